"""Images of the same classes from several domains: photographs, drawings, sketches ..."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from arml.lab.data.base import DataError
from arml.lab.data.cache import decoded, silent
from arml.lab.data.splits import balanced

SUFFIXES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp")
"""Of files that are taken for images, in small or capital letters."""

Progress: TypeAlias = Callable[[int, int], None]
"""Is told every so often how many images are decoded, and of how many."""
FilesByClass: TypeAlias = Mapping[str, Sequence[Path]]
"""The image files of one domain, classes in the order of their numbers."""
Tree: TypeAlias = Mapping[str, FilesByClass]
"""The image files of every domain; all have the same classes."""


class Domain(NamedTuple):
    """The images of one domain, and which of them are for what: indices, int64, ascending."""

    name: str
    x: Tensor
    """uint8, [N, C, H, W]."""
    y: Tensor
    """int64, [N]."""
    train: Tensor
    validation: Tensor
    test: Tensor
    """May hold training and validation images, too: a domain is tested only where it is not trained on."""


class DomainSet(NamedTuple):
    """Domains that share their classes: some are learned from, one is the target."""

    name: str
    domains: dict[str, Domain]
    classes: tuple[str, ...]


class Division(NamedTuple):
    """The training and validation images of one domain: indices, int64, ascending."""

    train: Tensor
    validation: Tensor


def shots(domain: Domain, per_class: int, num_classes: int, seed: int) -> Tensor:
    """The few training images of a target domain that may be learned from: ``per_class`` of every class.

    They are drawn by ``seed`` alone, and more of them with the same seed add to fewer. Indices, ascending.

    >>> four = torch.arange(4)
    >>> domain = Domain("photo", torch.zeros(4, 1, 8, 8), torch.tensor([0, 1, 0, 1]), four, four[:0], four)
    >>> shots(domain, 1, num_classes=2, seed=0), shots(domain, 2, num_classes=2, seed=0)
    (tensor([0, 1]), tensor([0, 1, 2, 3]))
    """
    if per_class < 1:
        raise ValueError(f"There should be at least 1 shot per class. Got {per_class}.")
    _check_enough(domain, per_class, num_classes)
    generator = torch.Generator().manual_seed(seed)
    order = domain.train[torch.randperm(len(domain.train), generator=generator)]
    return balanced(domain.y, order, [per_class] * num_classes).sort().values


def without(domain_test: Tensor, chosen: Tensor) -> Tensor:
    """The test images that are not among the ``chosen`` ones: what was learned from is not tested on.

    >>> without(torch.arange(5), torch.tensor([1, 3]))
    tensor([0, 2, 4])
    """
    return domain_test[~torch.isin(domain_test, chosen)]


def divided(y: Tensor, *, share: float = 0.1, seed: int = 0) -> Division:
    """Keeps a ``share`` of every class for validation, drawn by ``seed``, at least 1 image where there are 2.

    >>> divided(torch.tensor([0, 0, 0, 1, 1, 1]))
    Division(train=tensor([0, 1, 3, 4]), validation=tensor([2, 5]))
    """
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
    kept = [min(max(1, round(share * count)), count - 1) if count else 0 for count in torch.bincount(y).tolist()]
    validation = balanced(y, order, kept).sort().values
    return Division(without(torch.arange(len(y)), validation), validation)


def load_folders(root: Path, cache: Path, *, size: int, progress: Progress = silent) -> DomainSet:
    """Any set of domains that is laid out as ``root/<domain>/<class>/<image>``.

    Domains and classes are numbered in alphabetical order. A tenth of every class in every domain is for validation,
    always the same images; the test images are all. Files and folders whose name begins with a dot are not there, nor
    are files beside the domains.

    Args:
        root: Folder with at least two domains, all of which have the same classes.
        cache: Folder for the decoded images.
        size: Height and width that images get; what is not square loses its longer ends.
        progress: Told how many images are decoded, and of how many.
    """
    folders = subfolders(root)
    if len(folders) < 2:
        raise DataError(
            f"{root}: expected at least two domains, each a folder of its own, found {len(folders)}"
            f"{''.join(f': {folder.name}' for folder in folders)}. Lay images out as <domain>/<class>/<image>."
        )
    tree = image_tree(folders)
    return assembled(root.resolve().name, tree, divided_tree(tree), cache, size=size, progress=progress)


def subfolders(folder: Path) -> list[Path]:
    """The folders in ``folder`` by name, but for hidden ones; none if there is no such folder."""
    return [path for path in _visible(folder) if path.is_dir()] if folder.is_dir() else []


def image_tree(folders: Sequence[Path]) -> Tree:
    """The images of every domain, each a folder with one folder for every class; the classes must agree."""
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
    """The class numbers of one domain's files, class by class."""
    return torch.repeat_interleave(torch.tensor([len(files) for files in by_class.values()]))


def divided_tree(tree: Tree) -> dict[str, Division]:
    """A tenth of every class in every domain for validation, always the same images."""
    return {domain: divided(labels(by_class)) for domain, by_class in tree.items()}


def assembled(
    name: str, tree: Tree, divisions: Mapping[str, Division], cache: Path, *, size: int, progress: Progress
) -> DomainSet:
    """The images of ``tree``, decoded once for all domains, with one division for each; the test images are all."""
    files = {domain: [*chain(*by_class.values())] for domain, by_class in tree.items()}
    # With the size in its name, an array for large images does not replace the one for small ones.
    x = decoded([*chain(*files.values())], cache, name=f"{name}-{size}", size=size, progress=progress)
    parts = x.split([len(paths) for paths in files.values()])
    domains = {
        domain: Domain(domain, part, labels(tree[domain]), *divisions[domain], torch.arange(len(part)))
        for domain, part in zip(tree, parts, strict=True)
    }
    return DomainSet(name, domains, classes=tuple(next(iter(tree.values()))))


def _class_folders(folder: Path) -> list[Path]:
    for path in _visible(folder):
        if not path.is_dir():
            raise DataError(f"{path}: expected folders of classes only in a domain, found a file. Move it elsewhere.")
    return _visible(folder)


def _images(folder: Path) -> list[Path]:
    for path in _visible(folder):
        if path.is_dir() or path.suffix.lower() not in SUFFIXES:
            raise DataError(
                f"{path}: expected images only in the folder of a class ({', '.join(SUFFIXES)}), found "
                f"{'a folder' if path.is_dir() else 'another file'}. Move it elsewhere."
            )
    return _visible(folder)


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _check_enough(domain: Domain, per_class: int, num_classes: int) -> None:
    counts = torch.bincount(domain.y[domain.train], minlength=num_classes)[:num_classes]
    if int(counts.min()) < per_class:
        raise ValueError(
            f"Domain {domain.name!r} has {int(counts.min())} training images of class {int(counts.argmin())}; "
            f"{per_class} shots per class were asked for. Ask for at most {int(counts.min())}."
        )
