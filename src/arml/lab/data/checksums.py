"""Files with a checksum for every block behind their content, so that damage on disk is noticed.

Behind the content stand the CRC-32 of every block, 4 bytes each, and 28 bytes: a mark, the size of the content, the
number of blocks, and the CRC-32 of all checksums. Programs that know nothing of it read the content as before.
"""

import struct
import zlib
from array import array
from pathlib import Path
from typing import BinaryIO, NamedTuple

BLOCK = 2**22
"""Bytes with one checksum."""
_MARK, _END = b"arml-crc", struct.Struct("<8sQQI")


class Verified(NamedTuple):
    """The result of reading a file again."""

    blocks: int
    """Number of all blocks."""
    read: int
    """Number of blocks that were compared with their checksum."""
    damaged: tuple[int, ...]
    """Those that differ, counted from 0."""


class SummedWriter:
    """Writes content and counts its checksums; :meth:`finish` puts them behind it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._sums, self._sum, self._size = file, array("I"), 0, 0

    def write(self, content: bytes) -> int:
        """Writes ``content``, as a file does."""
        self._file.write(content)
        view = memoryview(content)
        while view:
            part = view[: BLOCK - self._size % BLOCK]
            self._sum = zlib.crc32(part, self._sum)
            self._size += len(part)
            view = view[len(part) :]
            if self._size % BLOCK == 0:
                self._end_block()
        return len(content)

    def finish(self) -> None:
        """Writes the checksums. Nothing may be written afterwards."""
        if self._size % BLOCK:
            self._end_block()
        sums = self._sums.tobytes()
        self._file.write(sums + _END.pack(_MARK, self._size, len(self._sums), zlib.crc32(sums)))

    def _end_block(self) -> None:
        self._sums.append(self._sum)
        self._sum = 0


def verify(path: Path, most: int | None = None) -> Verified | None:
    """Reads ``path`` again and compares blocks with their checksums; ``None`` if the file has none, or broken ones.

    Args:
        path: A file that :class:`SummedWriter` wrote.
        most: How many blocks to read, evenly spread with the first and the last; ``None``: all of them.
    """
    with path.open("rb") as file:
        found = _read_sums(file, path.stat().st_size)
        if found is None:
            return None
        size, sums = found
        chosen = _spread(len(sums), most)
        damaged = tuple(number for number in chosen if _sum_of(file, number, size) != sums[number])
    return Verified(len(sums), len(chosen), damaged)


def _read_sums(file: BinaryIO, length: int) -> tuple[int, "array[int]"] | None:
    if length < _END.size:
        return None
    file.seek(length - _END.size)
    mark, size, count, total = _END.unpack(file.read(_END.size))
    sums = array("I")
    if mark != _MARK or size + 4 * count + _END.size != length or count != -(-size // BLOCK):
        return None
    file.seek(size)
    sums.frombytes(file.read(4 * count))
    return (size, sums) if zlib.crc32(sums.tobytes()) == total else None


def _spread(count: int, most: int | None) -> list[int]:
    if most is None or count <= most:
        return list(range(count))
    return sorted({round(i * (count - 1) / (most - 1)) for i in range(most)})


def _sum_of(file: BinaryIO, number: int, size: int) -> int:
    file.seek(number * BLOCK)
    return zlib.crc32(file.read(min(BLOCK, size - number * BLOCK)))
