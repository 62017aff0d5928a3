"""Reads numbers from untrusted MATLAB 5 files: only what SVHN needs, in bounded memory.

A file has a header of 128 bytes and then elements: a type, a number of bytes, the bytes. A variable is an element of
type 14, or of type 15, which holds the same compressed. Inside are four elements: flags, sizes, name, values.
"""

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias

import numpy as np

Numbers: TypeAlias = "np.ndarray[Any, Any]"

LARGEST = 2**31
"""Bytes of a variable: room for 699 050 images of SVHN; its largest part has 531 131."""
_MATRIX, _COMPRESSED = 14, 15
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
"""How the values of an array may be stored, by the number of the type."""
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
"""What the values are, by the number of the class. MATLAB stores small whole numbers in fewer bytes than they have."""
_HEAD = 2**12
"""Bytes in which flags, sizes and name of a variable have to fit."""


class _Element(NamedTuple):
    kind: int
    content: bytes
    end: int
    """Where the next element begins."""


def read_matlab(path: Path, names: tuple[str, ...]) -> dict[str, Numbers]:
    """The arrays of numbers called ``names`` in ``path``, and an empty one for every other variable.

    Raises a ValueError that says what was found if the file is not a MATLAB 5 file, is damaged, or asks for more memory
    than ``LARGEST`` bytes per variable.
    """
    found: dict[str, Numbers] = {}
    with path.open("rb") as file:
        order = _byte_order(file.read(128))
        size = path.stat().st_size
        while file.tell() < size:
            kind, length = _unpack(order + "II", file.read(8))
            if length > size - file.tell():
                raise ValueError(f"an element of {length} bytes where the file has {size - file.tell()}")
            end = file.tell() + length
            name, value = _variable(file, kind, length, order, names)
            found[name] = value
            file.seek(end)
    return found


def _byte_order(header: bytes) -> str:
    order = {b"IM": "<", b"MI": ">"}.get(header[126:128])
    if order is None or header[124:126] not in (b"\x00\x01", b"\x01\x00"):
        raise ValueError("a damaged or different file")
    return order


def _variable(file: BinaryIO, kind: int, length: int, order: str, names: tuple[str, ...]) -> tuple[str, Numbers]:
    if kind == _COMPRESSED:
        return _parse(_decompress(file, length), order, names)
    if kind == _MATRIX:
        return _parse(_pieces(file, length), order, names, inside=True)
    raise ValueError(f"an element of type {kind}")


def _decompress(file: BinaryIO, length: int) -> Iterator[bytes]:
    """The content of a compressed element, piece by piece: a few bytes may stand for gigabytes."""
    inflate, left = zlib.decompressobj(), length
    while not inflate.eof:
        waiting = inflate.unconsumed_tail or file.read(min(left, 2**16))
        if not waiting:
            raise ValueError("compressed data that are cut short")
        left -= 0 if inflate.unconsumed_tail else len(waiting)
        try:
            yield inflate.decompress(waiting, 2**20)
        except zlib.error as error:
            raise ValueError(f"compressed data that are damaged ({error})") from error


def _pieces(file: BinaryIO, length: int) -> Iterator[bytes]:
    for start in range(0, length, 2**20):
        yield file.read(min(2**20, length - start))


def _parse(pieces: Iterator[bytes], order: str, names: tuple[str, ...], *, inside: bool = False) -> tuple[str, Numbers]:
    """Name and values of a variable: the head is checked before the values are read."""
    content = bytearray()
    _fill(content, pieces, _HEAD)
    start = 0
    if not inside:
        kind, length = _unpack(order + "II", bytes(content[:8]))
        if kind != _MATRIX or length > LARGEST:
            raise ValueError(f"an element of type {kind} with {length} bytes")
        start = 8
    flags = _element(content, start, order)
    sizes = _element(content, flags.end, order)
    name = _element(content, sizes.end, order)
    title, shape = name.content.decode("latin1"), _shape(sizes, order)
    if title not in names:
        return title, np.empty(0)
    wanted = _class(flags, order)
    kind, length, begin, _ = _tag(content, name.end, order)
    if kind not in _STORED or length != math.prod(shape) * np.dtype(_STORED[kind]).itemsize or length > LARGEST:
        raise ValueError(f"{length} bytes of type {kind} for {title} of shape {shape}")
    _fill(content, pieces, begin + length)
    if len(content) < begin + length:
        raise ValueError(f"{title} cut short")
    for piece in pieces:  # the checksum of compressed data comes at their end
        if len(piece) > _HEAD:
            raise ValueError(f"more bytes after {title} than belong to it")
    values = np.frombuffer(content, order + _STORED[kind], math.prod(shape), begin)
    return title, values.reshape(shape, order="F").astype(wanted, copy=False)


def _fill(content: bytearray, pieces: Iterator[bytes], wanted: int) -> None:
    while len(content) < wanted and (piece := next(pieces, None)) is not None:
        content += piece


def _element(content: bytearray, start: int, order: str) -> _Element:
    kind, length, begin, end = _tag(content, start, order)
    if begin + length > min(len(content), _HEAD):
        raise ValueError("a variable whose head is damaged")
    return _Element(kind, bytes(content[begin : begin + length]), end)


def _tag(content: bytearray, start: int, order: str) -> tuple[int, int, int, int]:
    """Type and number of bytes of an element, where these begin, and where the next element does.

    Up to four bytes stand in the place of the second number; longer elements are filled up to a multiple of eight.
    """
    first, second = _unpack(order + "II", bytes(content[start : start + 8]))
    if first >> 16:
        return first & 0xFFFF, min(first >> 16, 4), start + 4, start + 8
    return first, second, start + 8, start + 8 + (second + 7) // 8 * 8


def _shape(sizes: _Element, order: str) -> tuple[int, ...]:
    if sizes.kind != 5 or len(sizes.content) % 4 or not 8 <= len(sizes.content) <= 128:
        raise ValueError("a variable whose sizes are damaged")
    shape = tuple(int(n) for n in np.frombuffer(sizes.content, order + "i4"))
    if min(shape) < 0 or math.prod(shape) > LARGEST:
        raise ValueError(f"a variable of shape {shape}")
    return shape


def _class(flags: _Element, order: str) -> str:
    if flags.kind != 6 or len(flags.content) != 8:
        raise ValueError("a variable whose flags are damaged")
    number = _unpack(order + "II", flags.content)[0]
    if number & 0xFF not in _CLASSES or number & 0x0800:  # the flag of complex numbers
        raise ValueError(f"a variable of class {number & 0xFF} and shape that are no real numbers")
    return _CLASSES[number & 0xFF]


def _unpack(form: str, content: bytes) -> tuple[int, ...]:
    try:
        return struct.unpack(form, content)
    except struct.error as error:
        raise ValueError("a file that is cut short") from error
