"""Worlds of handwritten digits. The main task is to read the digits of one collection from few labels.

Auxiliary tasks see images of another collection, or unlabelled ones of the same. Which of them help is known:

- the right digit for images of the other collection, plain, noisy, faint or tilted, helps;
- a wrong digit, (y + s) mod 10 with one s per task, misleads: it is consistent, but never right;
- a digit drawn at random is noise; so is a code drawn for every unlabelled image;
- how much ink an image has, answered by the main task's own head, is another concept;
- where all images are spun, each by any angle and half of them with black and white exchanged, the few labels alone
  teach next to nothing;
- a pretext task on unlabelled images, with a head of its own, asks for the group of similar images that each belongs
  to. It helps. To tell by how many quarters an image is turned, or to find the same features in a noisy image as in the
  plain one, makes no difference here: running it has shown that.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from arml.lab.data.targets import Target
from arml.lab.worlds.division import Division, divide_pool, generator_for
from arml.lab.worlds.pools import ImagePool, digits, mnist
from arml.lab.worlds.world import MainExamples, Tier, Views, WorldData, WorldTask

DIGITS = tuple("0123456789")
TURNS = ("0", "90", "180", "270")
TESTED = 500
"""Test images; a further 100 are for curves."""
MNIST_AS_TARGET = 0.5
"""Share of the images of MNIST-5k in ``test`` that belong to the main task; the others are for auxiliary tasks."""

PRETEXTS = ("code", "turn", "group", "views")
"""Tasks on unlabelled images: a digit drawn for every image, by how many quarters each is turned, which of ten groups
of similar images it belongs to, each with a head of its own; and features that two views of an image should share."""

Show = Callable[[Tensor, torch.Generator], Tensor]


def _warp(x: Tensor, matrices: Tensor) -> Tensor:
    """Every image seen through its matrix [N, 2, 2]; what comes from outside is black."""
    grid = F.affine_grid(F.pad(matrices, (0, 1)), list(x.shape), align_corners=False)
    return F.grid_sample(x, grid, align_corners=False)


def _tilt(x: Tensor, generator: torch.Generator) -> Tensor:
    """Turns every image by up to 20 degrees."""
    angle = (torch.rand(len(x), generator=generator) - 0.5) * 2 * torch.pi / 9
    return _warp(x, torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1).reshape(-1, 2, 2))


def _spin(x: Tensor, generator: torch.Generator) -> Tensor:
    """Turns every image by any angle, and exchanges black and white in half of them."""
    angle = 2 * torch.pi * torch.rand(len(x), generator=generator)
    turned = _warp(x, torch.stack([angle.cos(), -angle.sin(), angle.sin(), angle.cos()], dim=1).reshape(-1, 2, 2))
    is_negative = torch.rand(len(x), 1, 1, 1, generator=generator) < 0.5
    return torch.where(is_negative, 255 - turned, turned)


def _warp_all(rows: list[list[float]]) -> Show:
    return lambda x, generator: _warp(x, torch.tensor(rows).expand(len(x), 2, 2))


SHOWS: dict[str, Show] = {
    "plain": lambda x, generator: x,
    "noisy": lambda x, generator: (x + 40 * torch.randn(x.shape, generator=generator)).clamp(0, 255),
    "faint": lambda x, generator: 0.6 * x,
    "tilted": _tilt,
    "inverted": lambda x, generator: 255 - x,
    "slanted": _warp_all([[1.0, 0.7], [0.0, 1.0]]),
    "small": _warp_all([[1.6, 0.0], [0.0, 1.6]]),
    "wide": _warp_all([[0.8, 0.0], [0.0, 1.6]]),
    "thick": lambda x, generator: F.max_pool2d(x, 3, 1, 1),
    "spun": _spin,
    "spun faint": lambda x, generator: 0.6 * _spin(x, generator),
    "spun thick": lambda x, generator: _spin(F.max_pool2d(x, 3, 1, 1), generator),
}
"""How a task shows its images."""


@dataclass(frozen=True)
class ImageTask:
    """What an auxiliary task shows and asks."""

    show: str = "plain"
    asks: Literal["digit", "ink", "random", "code", "turn", "group", "views"] = "digit"
    """``random``: a digit drawn for every image. For the last four see :data:`PRETEXTS`."""
    shift: int = 0
    """s, added to the digit."""
    collection: Literal["other", "same", "digits"] = "other"
    """``same``: the main task's, without its labelled and tested images; ``digits``: the source of ``test``."""
    scale: float = 1.0
    amount: int = 400
    """Images, drawn from the pool."""


def make_digits(
    tasks: Mapping[str, ImageTask], tier: Tier, is_flat: bool, labels: int, seed: int, show: str = "plain"
) -> WorldData:
    """The data of a world for one seed; ``is_flat`` for networks that take rows of numbers.

    The main task shows its images by ``show``, each in one way for all seeds; tasks on the same collection see them so.
    """
    target, sources = _pools(tier)
    target = target._replace(x=SHOWS[show](target.x, generator_for(0, "main")))
    parts = divide_pool(target.y, 10, labels=labels, validation=100, test=TESTED, seed=seed)
    as_input = partial(_as_input, is_flat=is_flat)

    def examples(rows: Tensor) -> MainExamples:
        return MainExamples(as_input(target.x[rows]), target.y[rows].float())

    few = examples(parts.few)
    main = WorldTask(few.x, Target(few.y, DIGITS), "class")
    aux: dict[str, WorldTask] = {}
    for name, task in tasks.items():
        x, answers, head = _draw_task(name, task, target, parts, sources, seed)
        if task.asks == "views":
            aux[name] = Views(as_input(x), Target(as_input(answers.values)), head, scale=task.scale)
        else:
            aux[name] = WorldTask(as_input(x), answers, head, scale=task.scale)
    return WorldData(main, aux, examples(parts.validation), examples(parts.test))


def _pools(tier: Tier) -> tuple[ImagePool, dict[str, ImagePool]]:
    """The target's images, and those of the sources."""
    if tier == "dev":
        return digits("dev"), {"other": mnist("dev")}
    images = mnist("test")
    place = F.one_hot(images.y).cumsum(0).gather(1, images.y[:, None]).squeeze(1) - 1
    mine = place < MNIST_AS_TARGET * images.y.bincount()[images.y]
    target, others = (ImagePool(images.x[chosen], images.y[chosen]) for chosen in (mine, ~mine))
    return target, {"other": others, "digits": digits("test")}


def _draw_task(
    name: str, task: ImageTask, target: ImagePool, parts: Division, sources: Mapping[str, ImagePool], seed: int
) -> tuple[Tensor, Target, str]:
    """Images, answers and the name of the head."""
    # Two tasks of the same description, called "... again", are one and the same task.
    generator = generator_for(seed, f"task {name.removesuffix(' again')}")
    same = task.asks in PRETEXTS or task.collection == "same"
    pool = ImagePool(target.x[parts.rest], target.y[parts.rest]) if same else sources[task.collection]
    chosen = torch.randperm(len(pool.y), generator=generator)[: task.amount]
    x, y = SHOWS[task.show](pool.x[chosen], generator), pool.y[chosen]
    if task.asks == "views":
        return x, Target(pool.x[chosen]), "class"  # a head that exists; views go through none
    if task.asks == "turn":
        turns = torch.arange(len(x)) % 4
        x = torch.cat([x[turns == turn].rot90(turn, dims=(2, 3)) for turn in range(4)])
        return x, Target(turns.sort().values.float(), TURNS), name
    if task.asks == "group":
        return x, _groups(x, seed), name
    if task.asks == "ink":
        y = _tenths(x.sum(dim=(1, 2, 3)))
    elif task.asks in ("random", "code"):
        y = torch.randint(10, y.shape, generator=generator)
    return x, Target(((y + task.shift) % 10).float(), DIGITS), name if task.asks == "code" else "class"


def _groups(x: Tensor, seed: int) -> Target:
    """Ten groups of similar images, by spectral clustering of the graph of their eight nearest neighbours."""
    from sklearn.cluster import SpectralClustering  # here, so that other worlds do not need it

    find = SpectralClustering(
        10, affinity="nearest_neighbors", n_neighbors=8, random_state=seed, assign_labels="cluster_qr"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a graph in two parts has groups, too
        found = find.fit_predict(x.flatten(1).numpy())
    return Target(torch.from_numpy(found).float(), DIGITS)


def _tenths(values: Tensor) -> Tensor:
    """Which tenth of all values each belongs to, 0 to 9."""
    return values.argsort().argsort() * 10 // len(values)


def _as_input(x: Tensor, *, is_flat: bool) -> Tensor:
    """Values from -1 to 1, as rows of numbers if ``is_flat``."""
    x = x / 127.5 - 1
    return x.flatten(1) if is_flat else x
