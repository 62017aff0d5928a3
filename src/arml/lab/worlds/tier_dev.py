"""Worlds to choose defaults with: digits of scikit-learn, the first half of MNIST-5k and of Yeast, two tables."""

from functools import partial

from arml.lab.worlds.image_worlds import ImageTask
from arml.lab.worlds.pools import diabetes, tumours, yeast_genes
from arml.lab.worlds.recipes import Recipes, coins, columns, random_codes, random_digits, wrong_digits
from arml.lab.worlds.table_worlds import TableTask, TableWorld
from arml.lab.worlds.world import World

_dev = Recipes("dev")
_plain, _noisy, _tilted = {"plain": ImageTask()}, {"noisy": ImageTask("noisy")}, {"tilted": ImageTask("tilted")}
_three = {**_plain, **_noisy, **_tilted}
_same = {"same": ImageTask(collection="same"), "same noisy": ImageTask("noisy", collection="same")}
_ink = {"ink": ImageTask(asks="ink"), "ink inverted": ImageTask("inverted", "ink"), **random_digits(1)}

_YEAST = TableWorld(partial(yeast_genes, "dev", "Class4"), tuple(f"x{n}" for n in range(103)), tested=500)
_TUMOURS = TableWorld(
    tumours,
    (
        "mean_texture",
        "mean_smoothness",
        "mean_symmetry",
        "mean_fractal_dimension",
        "texture_error",
        "smoothness_error",
        "symmetry_error",
        "worst_texture",
        "worst_smoothness",
        "worst_symmetry",
    ),
)
_DIABETES = TableWorld(diabetes)

DEV: tuple[World, ...] = (
    _dev.digits("digits-five-help-cnn", "all help", {**_three, "faint": ImageTask("faint"), "more": ImageTask()}, {}),
    _dev.digits("digits-one-helps-mlp", "all help", _plain, {}),
    _dev.digits("digits-three-help-two-mislead-cnn", "some mislead", _three, wrong_digits(3, 7)),
    _dev.digits("digits-three-help-two-mislead-mlp", "some mislead", _three, wrong_digits(3, 7)),
    _dev.digits(
        "digits-batchnorm-three-help-two-mislead-cnn", "some mislead", _three, wrong_digits(3, 7), network="small-32"
    ),
    _dev.digits("digits-batchnorm-one-helps-cnn", "all help", _plain, {}, network="small-32"),
    _dev.digits(
        "digits-300-labels-two-help-three-mislead-cnn", "some mislead", _same, wrong_digits(3, 5, 7), labels=300
    ),
    _dev.digits("digits-two-help-three-other-concepts-mlp", "some mislead", {**_plain, **_noisy}, _ink),
    _dev.digits("digits-five-mislead-cnn", "all mislead", {}, wrong_digits(1, 3, 5, 7, 9)),
    _dev.digits("digits-five-random-mlp", "noise", {}, random_digits(5)),
    _dev.digits(
        "digits-one-helps-twelve-mislead-mlp", "one good", _plain, {**wrong_digits(*range(1, 10)), **random_digits(3)}
    ),
    _dev.digits(
        "digits-spun-two-help-one-misleads-cnn",
        "some mislead",
        {name: ImageTask(name) for name in ("spun", "spun faint")},
        wrong_digits(4, show="spun"),
        labels=30,
        show="spun",
    ),
    _dev.digits("digits-same-task-twice-cnn", "twice", {**_plain, "plain again": ImageTask()}, wrong_digits(3)),
    _dev.digits(
        "digits-loss-scales-mlp",
        "loss scales",
        {"plain": ImageTask(scale=1e-3), **_noisy, "tilted": ImageTask("tilted", scale=1e3)},
        wrong_digits(3, scale=1e3),
    ),
    _dev.digits(
        "digits-groups-help-turns-and-codes-do-not-mlp",
        "pretext",
        {"group": ImageTask(asks="group", amount=600)},
        {"turn": ImageTask(asks="turn"), **random_codes(3)},
    ),
    _dev.digits(
        "digits-100-labels-views-and-turns-do-not-help-cnn",
        "pretext",
        {},
        {"views": ImageTask("noisy", "views", amount=600), "turn": ImageTask(asks="turn")},
        labels=100,
    ),
    _dev.table(
        "yeast-one-helps-39-coins",
        "one good",
        _YEAST,
        {"noisy labels": TableTask("main", noise=0.2)},
        coins(39),
        labels=30,
        steps=200,
    ),
    _dev.table(
        "yeast-thirteen-other-functions",
        "real",
        _YEAST,
        {},
        columns(*(f"Class{n}" for n in range(1, 15) if n != 4)),
        labels=30,
    ),
    _dev.table(
        "tumours-twin-and-coin",
        "other units",
        _TUMOURS,
        {"twin": TableTask("twin", noise=0.3, unit=100, natural_unit=10)},
        coins(1),
    ),
    _dev.table(
        "tumours-measured-columns",
        "real",
        _TUMOURS,
        {},
        columns("mean_radius", "mean_concavity", "mean_compactness", "area_error"),
    ),
    _dev.table(
        "diabetes-one-helps-one-misleads",
        "some mislead",
        _DIABETES,
        {"noisy labels": TableTask("main", noise=0.2)},
        {"wrong": TableTask("wrong")},
    ),
)
"""The worlds of ``dev``, in the order of tables."""
