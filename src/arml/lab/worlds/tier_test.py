"""Worlds for the published table: the second half of MNIST-5k and of Yeast, other digits, seven other tables.

No method and no default is chosen by them. Their seeds begin at 2000.
"""

from functools import partial

from arml.lab.worlds.image_worlds import ImageTask
from arml.lab.worlds.pools import bananas, cars, phishing, polls, segments, wine, yeast_genes
from arml.lab.worlds.recipes import Recipes, coins, columns, random_codes, random_digits, wrong_digits
from arml.lab.worlds.table_worlds import TableTask, TableWorld
from arml.lab.worlds.world import World

_test = Recipes("test")
_slanted, _small, _thick = ({name: ImageTask(name)} for name in ("slanted", "small", "thick"))
_digits, _wide = {"digits": ImageTask(collection="digits")}, {"wide": ImageTask("wide")}

_YEAST = TableWorld(partial(yeast_genes, "test", "Class3"), tuple(f"x{n}" for n in range(103)), tested=500)

TEST: tuple[World, ...] = (
    _test.digits("mnist-five-help-mlp", "all help", {**_slanted, **_small, **_thick, **_digits, **_wide}, {}),
    _test.digits("mnist-two-help-cnn", "all help", {**_small, **_digits}, {}),
    _test.digits(
        "mnist-two-help-three-mislead-cnn", "some mislead", {**_slanted, **_wide}, wrong_digits(1, 4, 6, show="thick")
    ),
    _test.digits(
        "mnist-three-help-two-other-concepts-mlp",
        "some mislead",
        {**_slanted, **_thick, **_wide},
        {"ink": ImageTask("wide", "ink"), "ink of digits": ImageTask("tilted", "ink", collection="digits")},
    ),
    _test.digits(
        "mnist-300-labels-one-helps-four-mislead-mlp",
        "some mislead",
        {"same": ImageTask(collection="same")},
        wrong_digits(2, 4, 6, 8, show="slanted"),
        labels=300,
    ),
    _test.digits("mnist-four-mislead-mlp", "all mislead", {}, wrong_digits(2, 4, 6, 8, show="slanted")),
    _test.digits("mnist-one-misleads-cnn", "all mislead", {}, wrong_digits(6, show="small")),
    _test.digits("mnist-five-random-cnn", "noise", {}, random_digits(5)),
    _test.digits("mnist-one-helps-39-random-mlp", "one good", _slanted, random_digits(39)),
    _test.digits(
        "mnist-same-tasks-twice-mlp",
        "twice",
        {**_wide, "wide again": ImageTask("wide")},
        {"wrong": ImageTask("small", shift=4), "wrong again": ImageTask("small", shift=4)},
    ),
    _test.digits(
        "mnist-loss-scales-cnn",
        "loss scales",
        {"slanted": ImageTask("slanted", scale=1e-3), "thick": ImageTask("thick", scale=1e3)},
        {**wrong_digits(2, show="wide", scale=1e3), **wrong_digits(6, show="wide")},
    ),
    _test.digits(
        "mnist-groups-help-turns-and-codes-do-not-mlp",
        "pretext",
        {"group": ImageTask(asks="group", amount=700)},
        {"turn": ImageTask(asks="turn"), **random_codes(3)},
    ),
    _test.digits(
        "mnist-one-helps-views-do-not-cnn",
        "pretext",
        _digits,
        {"views": ImageTask("noisy", "views", amount=700)},
        labels=50,
    ),
    _test.table(
        "segments-one-helps-twelve-coins",
        "one good",
        TableWorld(segments, tested=1000),
        {"noisy labels": TableTask("main", noise=0.3)},
        coins(12),
        labels=21,
    ),
    _test.table(
        "cars-one-helps-one-misleads",
        "some mislead",
        TableWorld(cars, tested=150),
        {"noisy answers": TableTask("main", noise=0.5)},
        {"wrong": TableTask("wrong")},
    ),
    _test.table(
        "phishing-twin-in-large-units-and-coin",
        "other units",
        TableWorld(phishing, tested=600),
        {"twin": TableTask("twin", noise=0.3, unit=100, natural_unit=10)},
        coins(1),
    ),
    _test.table(
        "phishing-twin-in-small-units-and-four-coins",
        "other units",
        TableWorld(phishing, tested=600),
        {"twin": TableTask("twin", noise=0.3, unit=0.01, natural_unit=10)},
        coins(4),
    ),
    _test.table(
        "yeast-seven-other-functions",
        "real",
        _YEAST,
        {},
        columns(*(f"Class{n}" for n in (1, 2, 4, 5, 6, 12, 13))),
        labels=30,
    ),
    _test.table(
        "wine-measured-columns",
        "real",
        TableWorld(wine, ("alcohol", "ash", "malic_acid", "magnesium", "hue"), tested=80, validation=20),
        {},
        columns("flavanoids", "proline", "color_intensity"),
    ),
    _test.digits(
        "mnist-batchnorm-three-help-two-mislead-cnn",
        "some mislead",
        {**_slanted, **_thick, **_wide},
        wrong_digits(3, 8, show="slanted"),
        network="small-32",
    ),
    _test.digits(
        "mnist-batchnorm-one-misleads-cnn", "all mislead", {}, wrong_digits(3, show="thick"), network="small-32"
    ),
    _test.digits(
        "mnist-50-labels-two-help-two-mislead-mlp",
        "some mislead",
        {**_thick, **_slanted},
        wrong_digits(1, 7, show="wide"),
        labels=50,
    ),
    _test.digits(
        "mnist-spun-three-help-two-mislead-cnn",
        "some mislead",
        {name: ImageTask(name) for name in ("spun", "spun faint", "spun thick")},
        wrong_digits(4, 7, show="spun"),
        labels=30,
        show="spun",
    ),
    _test.digits(
        "mnist-spun-three-mislead-mlp",
        "all mislead",
        {},
        wrong_digits(3, 6, 8, show="spun"),
        labels=30,
        show="spun",
    ),
    _test.table(
        "bananas-one-helps-one-misleads",
        "some mislead",
        TableWorld(bananas, tested=1000),
        {"noisy labels": TableTask("main", noise=0.3)},
        {"wrong": TableTask("wrong")},
    ),
    _test.table(
        "bananas-one-misleads", "all mislead", TableWorld(bananas, tested=1000), {}, {"wrong": TableTask("wrong")}
    ),
    _test.table(
        "polls-one-helps",
        "all help",
        TableWorld(polls, tested=500),
        {"noisy answers": TableTask("main", noise=0.5)},
        {},
    ),
)
"""The worlds of ``test``, in the order of tables."""
