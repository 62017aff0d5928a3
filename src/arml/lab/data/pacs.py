"""PACS: 9 991 images of 7 classes from 4 domains: art, cartoons, photographs, sketches (Li et al., ICCV 2017)."""

from collections.abc import Collection, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import torch

from arml.lab.data.base import DataError, file_error
from arml.lab.data.cache import ReportCount, report_nothing
from arml.lab.data.domain_set import (
    Division,
    DomainSet,
    FilesByClass,
    Tree,
    assemble,
    divide_tree,
    image_tree,
)
from arml.lab.data.limits import read_list

DOMAINS = ("art_painting", "cartoon", "photo", "sketch")
CLASSES = ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
"""The classes in alphabetical order; the official lists number them from 1."""
LAYOUTS = ("PACS", "PACS/kfold", "pacs/images", "kfold", "images", ".")
"""Where the domain folders may be, below the data folder; the last three if its path already names PACS."""
LEFT_OUT = "sketch/dog/n02103406_4068-1.png"
"""The one image that may be missing from a copy of the data set, on disk or in the lists, as it is from Dassl's."""


def load(root: Path, cache: Path, *, size: int = 64, progress: ReportCount = report_nothing) -> DomainSet:
    """Reads ``<domain>/<class>/<image>`` from ``root/PACS``, ``root/PACS/kfold``, ``root/pacs/images`` or ``root``.

    The official lists ``<domain>_{train,crossval,test}_kfold.txt`` decide which images are for training and which for
    validation. They may be in a folder ``splits``, next to the domains, or one level up. If one list is there, all
    must be, and they must agree with each other and with the files. Without lists, a tenth of every class is for
    validation, always the same images. All images are test images.

    Args:
        root: The data folder.
        cache: Folder for the decoded images.
        size: Height and width of the loaded images; the originals have 227 pixels.
        progress: Receives the number of decoded images and the number of all images.
    """
    return assemble("pacs", *files(root), cache, size=size, progress=progress)


def files(root: Path) -> tuple[Tree, dict[str, Division]]:
    """The image files and their division, checked as :func:`load` describes; no image is opened."""
    tree = _tree(folder(root))
    lists = _folder_of_lists(folder(root))
    return (tree, divide_tree(tree)) if lists is None else _apply_lists(lists, tree)


def folder(root: Path) -> Path:
    """The folder of the domains that :func:`load` reads; ``root/PACS`` if there is none."""
    holders = (root / layout for layout in LAYOUTS if any((root / layout / domain).is_dir() for domain in DOMAINS))
    return next(holders, root / LAYOUTS[0])


def _tree(folder: Path) -> Tree:
    for domain in DOMAINS:
        if not (folder / domain).is_dir():
            raise _error(folder / domain, "a folder of images", "no such folder")
    tree = image_tree([folder / domain for domain in DOMAINS])
    classes = tuple(tree[DOMAINS[0]])
    if classes != CLASSES:
        raise _error(folder, f"the classes {', '.join(CLASSES)} in every domain", ", ".join(classes))
    return tree


class _List(NamedTuple):
    """A list of images: the line number of each name."""

    path: Path
    lines: dict[str, int]


def _folder_of_lists(folder: Path) -> Path | None:
    places = (folder / "splits", folder, folder.parent / "splits", folder.parent)
    return next((place for place in places if any(path.is_file() for path in _list_paths(place))), None)


def _list_paths(place: Path) -> list[Path]:
    return [path for domain in DOMAINS for path in _paths(place, domain)]


def _paths(place: Path, domain: str) -> list[Path]:
    return [place / f"{domain}_{part}_kfold.txt" for part in ("train", "crossval", "test")]


def _apply_lists(place: Path, tree: Tree) -> tuple[Tree, dict[str, Division]]:
    """The files that the lists name, and the division that the lists give."""
    kept: dict[str, FilesByClass] = {}
    divisions = {}
    for domain, by_class in tree.items():
        train, crossval = _read_lists(place, domain, {_name(path): path for path in chain(*by_class.values())})
        names = {*train.lines, *crossval.lines}
        kept[domain] = {c: [path for path in files if _name(path) in names] for c, files in by_class.items()}
        divisions[domain] = _division(kept[domain], crossval.lines)
    return kept, divisions


def _division(by_class: FilesByClass, validation: Collection[str]) -> Division:
    chosen = torch.tensor([_name(path) in validation for path in chain(*by_class.values())])
    return Division((~chosen).nonzero().flatten(), chosen.nonzero().flatten())


def _read_lists(place: Path, domain: str, files: Mapping[str, Path]) -> tuple[_List, _List]:
    """Reads the lists of training and validation images; they must agree with the test list and with ``files``."""
    train, crossval, test = (_read(path, domain, files) for path in _paths(place, domain))
    for name, line in crossval.lines.items():
        if name in train.lines:
            raise _line_error(crossval.path, line, f"no image of {train.path.name}", name)
    _check_among(test, train, crossval)
    _check_among(train, test)
    _check_among(crossval, test)
    for name, path in files.items():
        if name not in test.lines and name != LEFT_OUT:
            raise _error(path, f"an image that the lists in {place} name", "one that they do not")
    return train, crossval


def _check_among(part: _List, *others: _List) -> None:
    """Checks that every image of ``part`` is in one of the others."""
    allowed = {LEFT_OUT}.union(*(other.lines for other in others))
    for name, line in part.lines.items():
        if name not in allowed:
            raise _line_error(part.path, line, f"an image of {' or '.join(o.path.name for o in others)}", name)


def _read(path: Path, domain: str, files: Mapping[str, Path]) -> _List:
    lines: dict[str, int] = {}
    for line, row in enumerate(_rows(path), start=1):
        name = _image(path, line, row, domain)
        if name in lines:
            raise _line_error(path, line, "another image in every line", f"{name}, as in line {lines[name]}")
        if name not in files and name != LEFT_OUT:
            raise _line_error(path, line, "an image that is there", f"{name}, which is not")
        lines[name] = line
    return _List(path, lines)


def _rows(path: Path) -> list[str]:
    try:
        return read_list(path).rstrip().splitlines()
    except FileNotFoundError as error:
        raise _error(path, "a list of images, as for the other parts and domains", "no such file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise _error(path, "a list of images", f"a damaged or different file ({error})") from error


def _image(path: Path, line: int, row: str, domain: str) -> str:
    """The name in a row such as ``photo/dog/056_0001.jpg 1``; its label must match its folder."""
    name, _, label = row.strip().rpartition(" ")
    holder, _, rest = name.partition("/")
    category = rest.partition("/")[0]
    if holder != domain or category not in CLASSES:
        raise _line_error(path, line, f"{domain}/<class>/<image> <label>", repr(row))
    expected = str(CLASSES.index(category) + 1)
    if label != expected:
        raise _line_error(path, line, f"label {expected} for {category}", repr(row))
    return name


def _name(path: Path) -> str:
    return "/".join(path.parts[-3:])


def _line_error(path: Path, line: int, expected: str, found: str) -> DataError:
    return _error(path, f"{expected} in line {line}", found)


def _error(path: Path, expected: str, found: str) -> DataError:
    return file_error("pacs", path, expected, found)
