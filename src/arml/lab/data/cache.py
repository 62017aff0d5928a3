"""Images, decoded or preprocessed once into an array on disk that every later run maps into memory."""

import hashlib
import os
import re
import stat
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor

from arml.lab.data.base import DataError
from arml.lab.data.checksums import SummedWriter, verify
from arml.lab.data.limits import most_pixels

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
ReportCount: TypeAlias = Callable[[int, int], None]
"""Receives how many of how many items are done, for progress bars."""

FORMAT = 1
"""Version of the files in the cache; a new number makes every old file useless, so that all are made again."""
MOST_BLOCKS = 64
"""Blocks of 4 MiB that are compared with their checksums when an array is opened; it takes a tenth of a second.
`arml data check --cache` compares all of them."""
CHUNK = 256
"""Images decoded between two calls of ``progress``, so that memory does not grow with the data set."""


def report_nothing(done: int, total: int) -> None:
    """A :data:`ReportCount` that shows nothing."""
    del done, total


def decode_images(
    files: Sequence[Path],
    folder: Path,
    *,
    name: str,
    size: int,
    crop: int | None = None,
    progress: ReportCount = report_nothing,
) -> Tensor:
    """The centres of the images in ``files``, in this order: uint8, [N, 3, ``size``, ``size``].

    The first call decodes all images into ``folder/name-<key>.npy``; later ones map that file into memory. The key
    changes with the files' names (below the folder that holds all of them), sizes and times of change, and with the
    arguments. The images are then decoded again, and older arrays of the same name are removed. Concurrent processes
    wait for the one that decodes. Changes to the tensor do not reach the file.

    Args:
        files: Images of any format and size that Pillow reads; grey ones become RGB.
        folder: Folder for the array, created if necessary.
        name: Name of the array. Arrays of different names coexist.
        size: Height and width of the result.
        crop: Side of the square that is cut from the centre and then resized. ``None``, or a side longer than the
            image: its largest centred square.
        progress: Called after every chunk with the number of decoded images and the number of all images.
    """
    _check(files, name, size, crop)
    folder.mkdir(parents=True, exist_ok=True)
    shape, key = (len(files), 3, size, size), _key(files, size, crop)
    return keep_array(_chunks(files, size, crop), folder, name=name, key=key, shape=shape, progress=progress)


def keep_array(
    chunks: Iterable[Array],
    folder: Path,
    *,
    name: str,
    key: str,
    shape: tuple[int, ...],
    dtype: type[np.generic] = np.uint8,
    progress: ReportCount = report_nothing,
) -> Tensor:
    """The array that ``chunks`` make, one after the other; they are only computed if the array is not there yet.

    It is in ``folder/name-<key>.npy``, and the tensor is a mapping of that file. Memory holds what is in use, once for
    all processes. Arrays of the same name and another key are removed. Concurrent processes wait for the one that
    writes. Changes to the tensor do not reach the file. Blocks of the file have checksums; a damaged array is made
    again, with a warning.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{key}.npy"
    with FileLock(folder / f"{name}.lock"):
        found = _map_array(path, shape, dtype)
        if found is None:
            _write(path, shape, dtype, chunks, progress)
            _remove_others(path, name)
            found = _map_array(path, shape, dtype)
    if found is None:
        raise DataError(f"{path}: was written but cannot be read back. Check the disk, or choose another cache folder.")
    return found


def _check(files: Sequence[Path], name: str, size: int, crop: int | None) -> None:
    if not files:
        raise DataError(f"{name}: expected at least one image file, found none.")
    if size < 1 or (crop is not None and crop < 1):
        raise ValueError(f"`size` and `crop` are numbers of pixels, at least 1. Got size {size}, crop {crop}.")


def _key(files: Sequence[Path], size: int, crop: int | None) -> str:
    base = os.path.commonpath([path.parent for path in files])
    digest = hashlib.sha256(repr((FORMAT, size, crop)).encode())
    for path in files:
        try:
            found = path.stat()
        except OSError as error:
            raise _image_error(path, error) from error
        if not stat.S_ISREG(found.st_mode):  # opening a pipe would wait for ever
            raise _image_error(path, OSError("no regular file"))
        digest.update(repr((str(path).removeprefix(base), found.st_size, found.st_mtime_ns)).encode())
    return digest.hexdigest()[:16]


def _map_array(path: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> Tensor | None:
    """The array in the file; ``None`` if it is missing or incomplete, so that it is made again."""
    if not _is_sound(path):
        return None
    try:
        # "c": changes stay in memory. torch would warn about a read-only mapping.
        array = np.load(path, mmap_mode="c")
    except (OSError, EOFError, ValueError):
        return None
    return torch.from_numpy(array) if array.shape == shape and array.dtype == dtype else None


def _is_sound(path: Path) -> bool:
    """Whether the file is there with its checksums, and none of the blocks that are looked at is damaged."""
    if not path.is_file() or (found := verify(path, MOST_BLOCKS)) is None:
        return False
    if found.damaged:
        warnings.warn(
            f"{path}: {len(found.damaged)} of {found.read} blocks do not have their checksum. The array is made again. "
            "If this happens more often, check the disk.",
            stacklevel=4,
        )
    return not found.damaged


def _write(
    path: Path, shape: tuple[int, ...], dtype: type[np.generic], chunks: Iterable[Array], progress: ReportCount
) -> None:
    """Writes the array. It gets its name once all of it is on disk; an interruption leaves nothing behind."""
    unfinished = path.with_suffix(".part")
    try:
        unfinished.unlink(missing_ok=True)  # it may be a link to another file
        with unfinished.open("xb") as file:
            summed = SummedWriter(file)
            description = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
            # Piece by piece, not through a mapping: a full disk then raises an error and does not kill the process.
            np.lib.format.write_array_header_1_0(summed, description)
            _write_chunks(summed, shape[0], chunks, progress)
            summed.finish()
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write_chunks(file: SummedWriter, count: int, chunks: Iterable[Array], progress: ReportCount) -> None:
    done = 0
    for chunk in chunks:
        file.write(chunk.tobytes())
        done += len(chunk)
        progress(done, count)


def _chunks(files: Sequence[Path], size: int, crop: int | None) -> Iterator[Array]:
    # Threads are enough: Pillow decodes and resizes without holding Python's lock.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(files), CHUNK):
            images = pool.map(lambda path: _centre(path, size, crop), files[start : start + CHUNK])
            yield np.stack(list(images))


def _centre(path: Path, size: int, crop: int | None) -> Array:
    """The centre of one image, uint8, [3, ``size``, ``size``]."""
    from PIL import Image  # here, so that data sets without image files do not need Pillow

    try:
        with Image.open(path) as image:
            _check_pixels(path, *image.size)
            side = min(*image.size, crop or min(image.size))
            left, top = ((length - side) // 2 for length in image.size)
            square = image.convert("RGB").crop((left, top, left + side, top + side))
    except DataError:
        raise
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise _image_error(path, error) from error
    # Pillow's filters average all pixels that fall into one, so that a smaller image has no jagged edges.
    return np.asarray(square.resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1)


def _check_pixels(path: Path, width: int, height: int) -> None:
    """Refuses an image that would take too much memory, before it is decoded."""
    if width * height > most_pixels():
        raise DataError(
            f"{path}: expected an image of at most {most_pixels()} pixels, found {width} x {height}. Make it smaller, "
            "or allow more with the environment variable ARML_MOST_PIXELS."
        )


def _image_error(path: Path, error: Exception) -> DataError:
    found = "no such file" if isinstance(error, FileNotFoundError) else f"a damaged or different file ({error})"
    return DataError(f"{path}: expected an image, found {found}. Get this file again from where the others came from.")


def _remove_others(path: Path, name: str) -> None:
    """Removes arrays of the same name with another key, and what a killed process left of them."""
    ours = re.compile(rf"{re.escape(name)}-[0-9a-f]{{16}}\.(npy|part)")
    for other in path.parent.iterdir():
        if ours.fullmatch(other.name) and other != path:
            other.unlink()
