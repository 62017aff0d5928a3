"""Real examples that ship inside packages, divided once between the two tiers: no example is in both.

Every function takes the tier and returns examples of that tier only. Digits, MNIST-5k and Yeast are divided by their
place in the file; scikit-learn's tumours and diabetes belong to ``dev``, all other tables to ``test``.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from arml.lab.data import mnist5k, yeast
from arml.lab.data.digit_domains import MARGIN, resize
from arml.lab.worlds.world import Tier

SIZE = {"dev": 8, "test": 12}
"""Height and width of images in pixels."""
DIGITS_FOR_DEV = 2 / 3
"""Share of the digits that are the target of ``dev``; the others are a source of ``test``."""


class ImagePool(NamedTuple):
    """Digits, [N, 1, H, W] with values from 0 to 255, and which they are, int64, [N]."""

    x: Tensor
    y: Tensor


class TablePool(NamedTuple):
    """Rows of a table. No number is missing."""

    columns: dict[str, Tensor]
    """Measurements by name, float64, [N]."""
    y: Tensor
    """The main target, [N]: the index of a class, or a number."""
    classes: tuple[str, ...]
    """Names of the classes; empty for a number."""


@cache
def digits(tier: Tier) -> ImagePool:
    """Scikit-learn's digits: two thirds for ``dev``; one third, scaled up, for ``test``."""
    x, y = original_digits(tier)
    return ImagePool(resize(x, SIZE[tier]).float(), y)


@cache
def mnist(tier: Tier) -> ImagePool:
    """MNIST-5k: the first half of every class for ``dev``, the second for ``test``; cut to the digit and scaled."""
    x, y = original_mnist(tier)
    inner = slice(MARGIN, x.shape[-1] - MARGIN)
    return ImagePool(resize(x[..., inner, inner], SIZE[tier]).float(), y)


def original_digits(tier: Tier) -> ImagePool:
    """The digits of a tier as they come, 8 x 8, uint8."""
    from sklearn.datasets import load_digits  # here, so that other worlds do not need it

    pixels, labels = load_digits(return_X_y=True)
    x = torch.from_numpy(np.rint(pixels * 255 / 16).astype(np.uint8)).reshape(-1, 1, 8, 8)
    mine = _places(len(x), DIGITS_FOR_DEV, tier)
    return ImagePool(x[mine], torch.from_numpy(labels.astype(np.int64))[mine])


def original_mnist(tier: Tier) -> ImagePool:
    """The images of MNIST-5k of a tier as they come, 28 x 28, uint8."""
    table = mnist5k.read_table()
    x, y = torch.from_numpy(table[:, :-1].reshape(-1, 1, 28, 28).copy()), torch.from_numpy(table[:, -1].astype(int))
    mine = torch.cat([(y == c).nonzero().flatten()[_places(int((y == c).sum()), 0.5, tier)] for c in range(10)])
    return ImagePool(x[mine], y[mine])


@cache
def yeast_genes(tier: Tier, main: str) -> TablePool:
    """Yeast: the first half of the genes for ``dev``, the second for ``test``. Other functions are columns, too."""
    examples = yeast.load()
    mine = _places(len(examples.targets[main].values), 0.5, tier)
    features = examples.inputs(torch.arange(len(examples.targets[main].values)))[mine].double()
    columns = {f"x{number}": values for number, values in enumerate(features.T)}
    columns |= {name: target.values[mine].double() for name, target in examples.targets.items() if name != main}
    return TablePool(columns, examples.targets[main].values[mine].double(), ("no", "yes"))


@cache
def tumours() -> TablePool:
    """Breast cancer Wisconsin, 569 tumours: benign or malignant. For ``dev``."""
    from sklearn.datasets import load_breast_cancer

    return _from_bunch(load_breast_cancer(), ("malignant", "benign"))


@cache
def diabetes() -> TablePool:
    """Diabetes, 442 patients: whether the disease progressed more than in half of them. For ``dev``."""
    from sklearn.datasets import load_diabetes

    pool = _from_bunch(load_diabetes(), ())
    return pool._replace(y=(pool.y > pool.y.median()).double(), classes=("less", "more"))


@cache
def wine() -> TablePool:
    """Wine, 178 bottles of three growers. For ``test``."""
    from sklearn.datasets import load_wine

    return _from_bunch(load_wine(), ("first", "second", "third"))


@cache
def segments() -> TablePool:
    """Image segments, 2 310 pieces of outdoor photographs of seven kinds, from river. For ``test``."""
    from river.datasets import ImageSegments

    rows = list(ImageSegments())  # type: ignore[no-untyped-call, unused-ignore]
    kinds = sorted({kind for _, kind in rows})
    y = torch.tensor([kinds.index(kind) for _, kind in rows], dtype=torch.float64)
    return TablePool(_columns([row for row, _ in rows]), y, tuple(kinds))


@cache
def phishing() -> TablePool:
    """Phishing, 1 250 web pages, from river. For ``test``."""
    from river.datasets import Phishing

    rows = list(Phishing())  # type: ignore[no-untyped-call, unused-ignore]
    y = torch.tensor([float(answer) for _, answer in rows], dtype=torch.float64)
    return TablePool(_columns([row for row, _ in rows]), y, ("no", "yes"))


@cache
def bananas() -> TablePool:
    """Bananas, 5 300 points in two clouds of that shape, made by hand, from river. For ``test``."""
    from river.datasets import Bananas

    rows = list(Bananas())  # type: ignore[no-untyped-call, unused-ignore]
    y = torch.tensor([float(answer) for _, answer in rows], dtype=torch.float64)
    return TablePool(_columns([row for row, _ in rows]), y, ("one", "other"))


@cache
def polls() -> TablePool:
    """Approval of a president on 1 001 days, and what five institutes had asked, from river. For ``test``."""
    from river.datasets import TrumpApproval

    rows = list(TrumpApproval())  # type: ignore[no-untyped-call, unused-ignore]
    return TablePool(_columns([row for row, _ in rows]), torch.tensor([y for _, y in rows], dtype=torch.float64), ())


@cache
def cars() -> TablePool:
    """Auto MPG, 392 cars and how far they drive on a gallon, from mlxtend. For ``test``."""
    from mlxtend.data import autompg_data  # type: ignore[import-untyped, unused-ignore]

    features, y = autompg_data()
    names = ("cylinders", "displacement", "horsepower", "weight", "acceleration", "year", "origin")
    columns = {name: torch.tensor(features[:, number].astype(float)) for number, name in enumerate(names)}
    return TablePool(columns, torch.tensor(np.asarray(y, dtype=float)), ())


def _places(count: int, share: float, tier: Tier) -> Tensor:
    """The first ``share`` of ``count`` places for ``dev``, all others for ``test``."""
    first = round(share * count)
    return torch.arange(first) if tier == "dev" else torch.arange(first, count)


def _columns(rows: "list[dict[str, float]]") -> dict[str, Tensor]:
    return {name: torch.tensor([float(row[name]) for row in rows], dtype=torch.float64) for name in rows[0]}


def _from_bunch(bunch: object, classes: tuple[str, ...]) -> TablePool:
    """A table of scikit-learn."""
    names, data, target = (getattr(bunch, part) for part in ("feature_names", "data", "target"))
    columns = {str(name).replace(" ", "_"): torch.tensor(data[:, number]) for number, name in enumerate(names)}
    return TablePool(columns, torch.tensor(np.asarray(target, dtype=float)), classes)
