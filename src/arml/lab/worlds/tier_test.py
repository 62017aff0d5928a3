"""Worlds for the published table: the second half of MNIST-5k and of Yeast, other digits, five other tables.

Nothing is chosen by them. Their seeds begin at 1000.
"""

from functools import partial

from arml.lab.worlds.image_worlds import ImageTask
from arml.lab.worlds.pools import cars, phishing, segments, wine, yeast_genes
from arml.lab.worlds.recipes import Recipes, coins, columns, random_digits, wrong_digits
from arml.lab.worlds.table_worlds import TableTask, TableWorld
from arml.lab.worlds.world import World

_test = Recipes("test")
_noisy, _tilted = {"noisy": ImageTask("noisy")}, {"tilted": ImageTask("tilted")}
_digits, _faint = {"digits": ImageTask(collection="digits")}, {"faint": ImageTask("faint")}
_five = {**_noisy, **_tilted, **_digits, **_faint, "digits tilted": ImageTask("tilted", collection="digits")}

_YEAST = TableWorld(partial(yeast_genes, "test", "Class3"), tuple(f"x{n}" for n in range(103)), tested=500)

TEST: tuple[World, ...] = (
    _test.digits("mnist-five-help-mlp", "all help", _five, {}),
    _test.digits("mnist-two-help-cnn", "all help", {**_noisy, **_digits}, {}),
    _test.digits("mnist-two-help-three-mislead-cnn", "some mislead", {**_tilted, **_faint}, wrong_digits(1, 4, 6)),
    _test.digits(
        "mnist-three-help-two-other-concepts-mlp",
        "some mislead",
        {**_noisy, **_tilted, **_faint},
        {"ink": ImageTask("noisy", "ink"), "ink of digits": ImageTask("tilted", "ink", collection="digits")},
    ),
    _test.digits(
        "mnist-300-labels-one-helps-four-mislead-mlp",
        "some mislead",
        {"same": ImageTask(collection="same")},
        wrong_digits(2, 4, 6, 8),
        labels=300,
    ),
    _test.digits("mnist-four-mislead-mlp", "all mislead", {}, wrong_digits(2, 4, 6, 8)),
    _test.digits("mnist-one-misleads-cnn", "all mislead", {}, wrong_digits(6)),
    _test.digits("mnist-five-random-cnn", "noise", {}, random_digits(5)),
    _test.digits(
        "mnist-one-helps-39-random-mlp", "one good", {"faint": ImageTask("faint", amount=600)}, random_digits(39)
    ),
    _test.digits(
        "mnist-same-tasks-twice-mlp",
        "twice",
        {**_tilted, "tilted again": ImageTask("tilted")},
        {"wrong+4": ImageTask(shift=4), "wrong+4 again": ImageTask(shift=4)},
    ),
    _test.digits(
        "mnist-loss-scales-cnn",
        "loss scales",
        {"noisy": ImageTask("noisy", scale=1e-3), "faint": ImageTask("faint", scale=1e3)},
        {"wrong+2": ImageTask(shift=2, scale=1e3), "wrong+6": ImageTask(shift=6)},
    ),
    _test.digits(
        "mnist-turns-and-random-code-cnn",
        "pretext",
        {"turn": ImageTask(asks="turn", amount=600)},
        {"code": ImageTask(asks="code")},
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
        "cars-twin-and-coin",
        "other units",
        TableWorld(cars, tested=150),
        {"twin": TableTask("twin", noise=0.3, unit=100)},
        coins(1),
        labels=20,
    ),
    _test.table(
        "phishing-twin-in-small-units-and-coins",
        "other units",
        TableWorld(phishing, tested=600),
        {"twin": TableTask("twin", noise=0.3, unit=0.01)},
        coins(4),
    ),
    _test.table(
        "yeast-other-functions-2",
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
)
"""The worlds of ``test``, in the order of tables."""
