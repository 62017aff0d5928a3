"""CelebA: 202 599 faces with 40 yes-or-no attributes each (Liu et al., 2015).

Its authors offer it for non-commercial research at https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

from arml.lab.data.base import DataError, file_error
from arml.lab.data.cache import ReportCount, decode_images, report_nothing
from arml.lab.data.limits import read_list
from arml.lab.data.targets import Examples, Rows, Target

ATTRIBUTES, PARTITION, IMAGES = "list_attr_celeba.txt", "list_eval_partition.txt", "img_align_celeba"
NUM_ATTRIBUTES = 40
PARTS = ("0", "1", "2")
"""How the partition file writes training, validation, test."""

# Where the original release keeps each of them; copies without these folders are just as common.
_NESTED = {ATTRIBUTES: "Anno", PARTITION: "Eval", IMAGES: "Img"}


class Lists(NamedTuple):
    """The contents of the text files; no image has been opened."""

    files: list[Path]
    targets: dict[str, Target]
    rows: Rows


def load(root: Path, cache: Path, *, size: int = 64, progress: ReportCount = report_nothing) -> Examples:
    """Reads the faces that :func:`lists` finds below ``root``: uint8, [N, 3, ``size``, ``size``].

    The largest centred square is resized: 178 x 178 of the 178 x 218 pixels of an original image. Reduced copies, with
    fewer or smaller images, can be read as well. Images are decoded once and stored in the folder ``cache``.
    """
    files, targets, rows = lists(root)
    # The size is part of the name, so that runs of different sizes do not remove each other's images.
    images = decode_images(files, cache, name=f"celeba-{size}", size=size, progress=progress)
    return Examples("celeba", targets, lambda train: images, rows)


def lists(root: Path) -> Lists:
    """Reads the attributes and the official partition of every image in the attribute file.

    The files are in ``root/celeba``, ``root/CelebA`` or ``root``, all in one folder or as in the original release, in
    ``Anno``, ``Eval`` and ``Img``.
    """
    attributes, partition, images = (_place(folder(root), name) for name in (ATTRIBUTES, PARTITION, IMAGES))
    names, values = _read_attributes(attributes)
    parts = _read_partition(partition)
    _check_all_there(values, parts, attributes, images)
    part = torch.tensor([PARTS.index(parts[name]) for name in values])
    rows = Rows(*((part == number).nonzero().flatten() for number in range(len(PARTS))))
    if not all(map(len, rows)):
        raise _error(partition, "images for training (0), validation (1) and test (2)", _describe_counts(rows))
    table = torch.tensor(list(values.values()), dtype=torch.float32)
    targets = {name: Target(column.contiguous(), ("no", "yes")) for name, column in zip(names, table.T, strict=True)}
    return Lists([images / name for name in values], targets, rows)


def folder(root: Path) -> Path:
    """Where :func:`lists` reads from: the first folder with an attribute file, or ``root/celeba``."""
    places = [root / "celeba", root / "CelebA", root]
    return next((place for place in places if _place(place, ATTRIBUTES).exists()), places[0])


def _place(folder: Path, name: str) -> Path:
    nested = folder / _NESTED[name] / name
    return nested if nested.exists() and not (folder / name).exists() else folder / name


def _read_attributes(path: Path) -> tuple[list[str], dict[str, list[bool]]]:
    """The names of the attributes, and for every image whether it has each of them."""
    lines = _lines(path, f"a list of {NUM_ATTRIBUTES} attributes of every image")
    count, names = (lines[0].strip(), lines[1].split()) if len(lines) > 1 else ("", [])
    if not count.isdecimal() or len(set(names)) != NUM_ATTRIBUTES or len(names) != NUM_ATTRIBUTES:
        expected = f"a number of images in line 1 and {NUM_ATTRIBUTES} different names in line 2"
        raise _error(path, expected, f"{count[:40]!r} and {len(names)} names, {len(set(names))} of them different")
    values: dict[str, list[bool]] = {}
    for number, line in enumerate(lines[2:], start=3):
        image, *given = line.split()
        if len(given) != NUM_ATTRIBUTES or not {"-1", "1"}.issuperset(given) or image in values:
            raise _line_error(path, number, f"a new image and {NUM_ATTRIBUTES} times -1 or 1", line)
        values[image] = [value == "1" for value in given]
    if int(count) != len(values) or not values:
        raise _error(path, f"{count} images, as line 1 says, and at least one", f"{len(values)}")
    return names, values


def _read_partition(path: Path) -> dict[str, str]:
    """For every image its part: 0, 1 or 2."""
    parts: dict[str, str] = {}
    for number, line in enumerate(_lines(path, "a list of images, each with 0, 1 or 2"), start=1):
        image, *part = line.split()
        if len(part) != 1 or part[0] not in PARTS or image in parts:
            raise _line_error(path, number, "a new image and 0, 1 or 2", line)
        parts[image] = part[0]
    return parts


def _lines(path: Path, expected: str) -> list[str]:
    """The lines of a text file, without empty ones at its end."""
    try:
        lines = read_list(path).rstrip().splitlines()
    except FileNotFoundError as error:
        raise _error(path, expected, "no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise _error(path, expected, f"something else ({error})") from error
    if "" in map(str.strip, lines):
        raise _error(path, expected, f"an empty line {[line.strip() for line in lines].index('') + 1}")
    return lines


def _check_all_there(images: Iterable[str], parts: dict[str, str], attributes: Path, folder: Path) -> None:
    """Checks that every image of the attribute file is in the partition and in the folder."""
    if not folder.is_dir():
        raise _error(folder, "a folder of images", "no such folder")
    present = {path.name for path in folder.iterdir()}  # one look at the folder, not one per image
    for number, image in enumerate(images, start=3):
        if image not in parts:
            raise _line_error(attributes, number, f"only images that {PARTITION} lists, too", image)
        if image not in present:
            raise _line_error(attributes, number, f"only images that are in {folder}", image)


def _describe_counts(rows: Rows) -> str:
    return ", ".join(f"{len(part)} for {name}" for name, part in rows._asdict().items())


def _line_error(path: Path, number: int, expected: str, line: str) -> DataError:
    excerpt = line.strip() if len(line.strip()) <= 60 else f"{line.strip()[:60]}... ({len(line.split())} words)"
    return _error(path, expected, f"line {number}: {excerpt}")


def _error(path: Path, expected: str, found: str) -> DataError:
    return file_error("celeba", path, expected, found)
