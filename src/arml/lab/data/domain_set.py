"""Images of the same classes from several domains: photographs, drawings, sketches ..."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from arml.lab.data.base import DataError
from arml.lab.data.cache import ReportCount, decode_images, report_nothing
from arml.lab.data.splits import take_per_class

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
"""Suffixes of image files, in lower or upper case."""

FilesByClass: TypeAlias = Mapping[str, Sequence[Path]]
"""The image files of one domain, by class, in the order of the class indices."""
Tree: TypeAlias = Mapping[str, FilesByClass]
"""The image files of every domain; all have the same classes."""


class Domain(NamedTuple):
    """The images of one domain; training, validation and test images by index, int64, ascending."""

    name: str
    x: Tensor
    """uint8, [N, C, H, W]."""
    y: Tensor
    """int64, [N]."""
    train: Tensor
    validation: Tensor
    test: Tensor
    """May include training and validation images: a domain is tested only in runs that do not train on it."""


class DomainSet(NamedTuple):
    """Domains with the same classes: one is the target, the others are sources."""

    name: str
    domains: dict[str, Domain]
    classes: tuple[str, ...]


class Division(NamedTuple):
    """The training and validation images of one domain: indices, int64, ascending."""

    train: Tensor
    validation: Tensor


def draw_shots(domain: Domain, per_class: int, num_classes: int, seed: int) -> Tensor:
    """Draws the few training images of a target domain that a learner may use: ``per_class`` of every class.

    Only ``seed`` decides, and with the same seed more shots contain fewer. Returns indices, ascending.

    >>> four = torch.arange(4)
    >>> domain = Domain("photo", torch.zeros(4, 1, 8, 8), torch.tensor([0, 1, 0, 1]), four, four[:0], four)
    >>> draw_shots(domain, 1, num_classes=2, seed=0), draw_shots(domain, 2, num_classes=2, seed=0)
    (tensor([0, 1]), tensor([0, 1, 2, 3]))
    """
    if per_class < 1:
        raise ValueError(f"There should be at least 1 shot per class. Got {per_class}.")
    _check_enough(domain, per_class, num_classes)
    generator = torch.Generator().manual_seed(seed)
    order = domain.train[torch.randperm(len(domain.train), generator=generator)]
    return take_per_class(domain.y, order, [per_class] * num_classes).sort().values


def exclude(domain_test: Tensor, chosen: Tensor) -> Tensor:
    """The test images that are not among the ``chosen`` ones: no image is both learned from and tested on.

    >>> exclude(torch.arange(5), torch.tensor([1, 3]))
    tensor([0, 2, 4])
    """
    return domain_test[~torch.isin(domain_test, chosen)]


def divide(y: Tensor, *, share: float = 0.1, seed: int = 0) -> Division:
    """Holds out a ``share`` of every class for validation, drawn by ``seed``: at least 1 of 2 or more images.

    >>> divide(torch.tensor([0, 0, 0, 1, 1, 1]))
    Division(train=tensor([0, 1, 3, 4]), validation=tensor([2, 5]))
    """
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    kept = [min(max(1, round(share * count)), count - 1) if count else 0 for count in torch.bincount(y).tolist()]
    validation = take_per_class(y, order, kept).sort().values
    return Division(exclude(torch.arange(len(y)), validation), validation)


def load_folders(root: Path, cache: Path, *, size: int, progress: ReportCount = report_nothing) -> DomainSet:
    """Loads any set of domains with the layout ``root/<domain>/<class>/<image>``.

    Domains and classes are numbered in alphabetical order. A tenth of every class in every domain is held out for
    validation, always the same images; all images are test images. Files and folders whose names begin with a dot are
    ignored, and so are files next to the domains.

    Args:
        root: Folder with at least two domains, all with the same classes.
        cache: Folder for the decoded images.
        size: Height and width of the loaded images; images that are not square lose the ends of their longer side.
        progress: Receives the number of decoded images and the number of all images.
    """
    folders = subfolders(root)
    if len(folders) < 2:
        raise DataError(
            f"{root}: expected at least two domains, each a folder of its own, found {len(folders)}"
            f"{''.join(f': {folder.name}' for folder in folders)}. Lay images out as <domain>/<class>/<image>."
        )
    tree = image_tree(folders)
    return assemble(root.resolve().name, tree, divide_tree(tree), cache, size=size, progress=progress)


def subfolders(folder: Path) -> list[Path]:
    """The visible folders in ``folder``, sorted by name; none if ``folder`` does not exist."""
    return [path for path in _visible_paths(folder) if path.is_dir()] if folder.is_dir() else []


def image_tree(folders: Sequence[Path]) -> Tree:
    """The images of every domain, a folder with one folder per class; the classes of all domains must agree."""
    found = {folder.name: {path.name: _images(path) for path in _class_folders(folder)} for folder in folders}
    classes = sorted({c for by_class in found.values() for c, files in by_class.items() if files})
    lacking = {domain: [c for c in classes if not by_class.get(c)] for domain, by_class in found.items()}
    if not classes or any(lacking.values()):
        lists = "; ".join(f"{domain} has no {', '.join(names)}" for domain, names in lacking.items() if names)
        raise DataError(
            f"{folders[0].parent}: expected images of the same classes in every domain, found: "
            f"{lists or 'no images at all'}. Add or remove class folders until they agree."
        )
    return {domain: {c: by_class[c] for c in classes} for domain, by_class in found.items()}


def labels(by_class: FilesByClass) -> Tensor:
    """The class indices of one domain's files, class by class."""
    return torch.repeat_interleave(torch.tensor([len(files) for files in by_class.values()]))


def divide_tree(tree: Tree) -> dict[str, Division]:
    """Holds out a tenth of every class in every domain for validation, always the same images."""
    return {domain: divide(labels(by_class)) for domain, by_class in tree.items()}


def assemble(
    name: str, tree: Tree, divisions: Mapping[str, Division], cache: Path, *, size: int, progress: ReportCount
) -> DomainSet:
    """Decodes the images of ``tree``, all domains in one array, and adds the divisions; all images are test images."""
    files = {domain: [*chain(*by_class.values())] for domain, by_class in tree.items()}
    # With the size in its name, an array for large images does not replace the one for small ones.
    x = decode_images([*chain(*files.values())], cache, name=f"{name}-{size}", size=size, progress=progress)
    parts = x.split([len(paths) for paths in files.values()])
    domains = {
        domain: Domain(domain, part, labels(tree[domain]), *divisions[domain], torch.arange(len(part)))
        for domain, part in zip(tree, parts, strict=True)
    }
    return DomainSet(name, domains, classes=tuple(next(iter(tree.values()))))


def _class_folders(folder: Path) -> list[Path]:
    for path in _visible_paths(folder):
        if not path.is_dir():
            raise DataError(f"{path}: expected folders of classes only in a domain, found a file. Move it elsewhere.")
    return _visible_paths(folder)


def _images(folder: Path) -> list[Path]:
    for path in _visible_paths(folder):
        if path.is_dir() or path.suffix.lower() not in SUFFIXES:
            raise DataError(
                f"{path}: expected images only in the folder of a class ({', '.join(SUFFIXES)}), found "
                f"{'a folder' if path.is_dir() else 'another file'}. Move it elsewhere."
            )
    return _visible_paths(folder)


def _visible_paths(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _check_enough(domain: Domain, per_class: int, num_classes: int) -> None:
    counts = torch.bincount(domain.y[domain.train], minlength=num_classes)[:num_classes]
    if int(counts.min()) < per_class:
        raise ValueError(
            f"Domain {domain.name!r} has {int(counts.min())} training images of class {int(counts.argmin())}; "
            f"{per_class} shots per class were asked for. Ask for at most {int(counts.min())}."
        )
