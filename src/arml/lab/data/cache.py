"""Image files, decoded once into one array on disk that every later run maps into memory."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import torch
from filelock import FileLock
from torch import Tensor

from arml.lab.data.base import DataError

Pixels: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

FORMAT = 1
"""Of the files here; a new number makes every old file useless, so that all are made again."""
CHUNK = 256
"""Images decoded between two calls of ``progress``, so that memory does not grow with the data set."""


def silent(done: int, total: int) -> None:
    """A ``progress`` that shows nothing."""
    del done, total


def decoded(
    files: Sequence[Path],
    folder: Path,
    *,
    name: str,
    size: int,
    crop: int | None = None,
    progress: Callable[[int, int], None] = silent,
) -> Tensor:
    """The centres of the images in ``files``, in this order: uint8, [N, 3, ``size``, ``size``].

    The first call decodes all images into ``folder/name-<key>.npy``; later ones map that file into memory. The key
    changes with the files' names (below the folder that holds all of them), sizes and times of change, and with the
    settings here; then the images are decoded again, and older arrays of the same name are removed. Processes that ask
    at the same time wait for the one that decodes. The tensor may be changed: the file stays as it is.

    Args:
        files: Images of any format and size that Pillow reads; grey ones become RGB.
        folder: Where the array is kept; made if need be.
        name: Of the array. Arrays of different names live side by side.
        size: Height and width of the result.
        crop: Side of the square that is cut from the centre and then resized. ``None``, or more than an image has: its
            largest centred square.
        progress: Called now and then with the number of images that are done, and of all.
    """
    _check(files, name, size, crop)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{_key(files, size, crop)}.npy"
    shape = (len(files), 3, size, size)
    with FileLock(folder / f"{name}.lock"):
        found = _mapped(path, shape)
        if found is None:
            _write(path, shape, _chunks(files, size, crop), progress)
            _remove_others(path, name)
            found = _mapped(path, shape)
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
        digest.update(repr((str(path).removeprefix(base), found.st_size, found.st_mtime_ns)).encode())
    return digest.hexdigest()[:16]


def _mapped(path: Path, shape: tuple[int, ...]) -> Tensor | None:
    """The array in the file; ``None`` if there is none or not all of it, so that it is made again."""
    try:
        # "c": changes stay in memory. A mapping that is only for reading would make torch warn.
        array = np.load(path, mmap_mode="c")
    except (OSError, EOFError, ValueError):
        return None
    return torch.from_numpy(array) if array.shape == shape and array.dtype == np.uint8 else None


def _write(path: Path, shape: tuple[int, ...], chunks: Iterable[Pixels], progress: Callable[[int, int], None]) -> None:
    """The array appears under its name when all of it is on disk; whatever stops the writing leaves nothing."""
    unfinished = path.with_suffix(".part")
    try:
        with unfinished.open("wb") as file:
            _write_array(file, shape, chunks, progress)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write_array(
    file: BinaryIO, shape: tuple[int, ...], chunks: Iterable[Pixels], progress: Callable[[int, int], None]
) -> None:
    # Written piece by piece, not through a mapping: a full disk is then an error and not the end of the process.
    np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    done = 0
    for chunk in chunks:
        file.write(chunk.tobytes())
        done += len(chunk)
        progress(done, shape[0])


def _chunks(files: Sequence[Path], size: int, crop: int | None) -> Iterator[Pixels]:
    # Threads are enough: Pillow decodes and resizes without holding Python's lock.
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(files), CHUNK):
            images = pool.map(lambda path: _centre(path, size, crop), files[start : start + CHUNK])
            yield np.stack(list(images))


def _centre(path: Path, size: int, crop: int | None) -> Pixels:
    """The centre of one image, uint8, [3, ``size``, ``size``]."""
    from PIL import Image  # here, so that data sets without image files do not need Pillow

    try:
        with Image.open(path) as image:
            side = min(*image.size, crop or min(image.size))
            left, top = ((length - side) // 2 for length in image.size)
            square = image.convert("RGB").crop((left, top, left + side, top + side))
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise _image_error(path, error) from error
    # Pillow's filters cover all pixels that fall into one, so that a smaller image has no jagged edges.
    return np.asarray(square.resize((size, size), Image.Resampling.BILINEAR)).transpose(2, 0, 1)


def _image_error(path: Path, error: Exception) -> DataError:
    found = "no such file" if isinstance(error, FileNotFoundError) else f"a damaged or different file ({error})"
    return DataError(f"{path}: expected an image, found {found}. Get this file again from where the others came from.")


def _remove_others(path: Path, name: str) -> None:
    """Arrays of the same name but another key, and what a killed process left of them."""
    ours = re.compile(rf"{re.escape(name)}-[0-9a-f]{{16}}\.(npy|part)")
    for other in path.parent.iterdir():
        if ours.fullmatch(other.name) and other != path:
            other.unlink()
