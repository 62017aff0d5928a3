"""How large files of users may be: generous defaults, and environment variables for whoever needs more."""

import gzip
import os
import stat
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

from arml.lab.data.base import DataError

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData  # type: ignore[import-untyped, unused-ignore]

MOST_PIXELS, MOST_TABLE_BYTES, MOST_LIST_BYTES = 50_000_000, 2**31, 2**28
"""Pixels of an image, bytes of a table once it is decompressed, and bytes of a list of images."""


def most_pixels() -> int:
    """The environment variable ARML_MOST_PIXELS, or 50 million."""
    return _limit("ARML_MOST_PIXELS", MOST_PIXELS)


def most_table_bytes() -> int:
    """The environment variable ARML_MOST_TABLE_BYTES, or 2 GiB."""
    return _limit("ARML_MOST_TABLE_BYTES", MOST_TABLE_BYTES)


def read_list(path: Path) -> str:
    """The text of a list of images; raises an OSError if it is no regular file, or larger than any list."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError("no regular file")
    if found.st_size > MOST_LIST_BYTES:
        raise OSError(f"{found.st_size} bytes, and lists have at most {MOST_LIST_BYTES}")
    return path.read_text(encoding="utf-8")


def check_inflated_size(path: Path) -> None:
    """Raises a :class:`DataError` if a table is larger than allowed: decompressed for .gz, in memory for .parquet.

    A .gz is decompressed once, piece by piece, and nothing is kept: ten kilobytes may stand for gigabytes.
    """
    most, size = most_table_bytes(), path.stat().st_size
    if path.name.lower().endswith(".gz"):
        size = _inflated_size(path, most)
    elif path.name.lower().endswith(".parquet"):
        size = max(size, _parquet_size(path))
    if size > most:
        raise DataError(
            f"{path}: expected a table of at most {most} bytes, found a larger one. Keep the rows and columns that you "
            "need, or allow more with the environment variable ARML_MOST_TABLE_BYTES."
        )


def _inflated_size(path: Path, most: int) -> int:
    size = 0
    try:
        with gzip.open(path) as file:
            while size <= most and (piece := file.read(2**20)):
                size += len(piece)
    except (OSError, EOFError, zlib.error):
        pass  # damaged: whoever reads it says so
    return size


def _parquet_size(path: Path) -> int:
    """About how many bytes a parquet file takes in memory, by its own account: a value repeated costs it nothing."""
    try:
        from pyarrow.parquet import read_metadata  # type: ignore[import-untyped, unused-ignore]

        found = read_metadata(path)
        return max(8 * int(found.num_rows) * int(found.num_columns), _stored_size(found))
    except (ImportError, OSError, ValueError):
        return 0  # damaged: whoever reads it says so


def _stored_size(metadata: "FileMetaData") -> int:
    return sum(int(metadata.row_group(number).total_byte_size) for number in range(metadata.num_row_groups))


def _limit(name: str, default: int) -> int:
    words = os.environ.get(name, "")
    if not words:
        return default
    if not words.isdecimal() or not 0 < int(words) < 2**62:
        raise ValueError(f"The environment variable {name} should be a positive whole number. Got {words!r}.")
    return int(words)
