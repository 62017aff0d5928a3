"""What a setting contributes to a run, and how that becomes everything the run trains with."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch

from arml.lab.build.components import (
    compile_trunk,
    find_facts,
    make_noise,
    make_optimizer,
    make_reweighter,
    make_scaler,
)
from arml.lab.build.networks import AS_IT_COMES, Start, make_trunk
from arml.lab.data.batches import Batches
from arml.lab.data.placement import Placement
from arml.lab.hardware import AUTOCAST, CPU, draw_source
from arml.lab.learners.base import Learner
from arml.lab.run import Run
from arml.lab.train import Evaluate, Metrics, Parts

B = TypeVar("B")
T = TypeVar("T")
MOST_KEPT = 3
"""Data sets that a process keeps at the same time."""


class Folders(NamedTuple):
    """Where a run reads from."""

    data: Path
    """Holds data sets."""
    cache: Path
    """Keeps decoded images, whitened images and whitening matrices between runs."""
    kept: dict[Hashable, Any] | None = None
    """What earlier runs of this process have read; ``None``: every run reads anew."""

    def read_once(self, key: Hashable, read: Callable[[], T]) -> T:
        """What ``read`` returns. A process that trains many runs calls it once for a ``key``, which names the data."""
        if self.kept is None:
            return read()
        place = (self.data, self.cache, key)
        if place not in self.kept:
            while len(self.kept) >= MOST_KEPT:
                del self.kept[next(iter(self.kept))]
            self.kept[place] = read()
        known: T = self.kept[place]
        return known


@dataclass(frozen=True)
class Contribution(Generic[B]):
    """Data, learner and evaluation: all that differs from setting to setting."""

    learner: Learner[B]
    batches: Batches[B]
    example: torch.Size
    """Shape of one example: an image, whether features of it are cached or not, or a row of a table."""
    num_outputs: int
    """Outputs of the main task's head."""
    num_examples: int
    """N, the number of training examples, which sets the size of Langevin noise."""
    lr: float
    """Step size of the optimiser unless the run has its own."""
    network_seed: int
    """Seeds the initial network."""
    draw_seed: int
    """Seeds everything the learner draws."""
    validation: Evaluate
    test: Evaluate
    score: Callable[[Metrics], float] | None
    """What the network is chosen by on validation examples: less is better; ``None``: the last network counts."""
    choose_after: int = 0
    """Networks of earlier steps are not chosen."""
    aux_divisor: int = 1
    """Divides every auxiliary loss."""
    yardsticks: Callable[[], Metrics] = dict
    """Measures the errors of simple models with the same labels, by name."""
    train_on_main: bool = True
    """Whether the main loss trains the network or only steers the weights."""
    dropout: float = 0.0
    start: Start = AS_IT_COMES
    """What the trunk starts from, and what of it is trained."""


def assemble(run: Run, given: Contribution[B], device: torch.device = CPU) -> Parts[B]:
    """Makes network, optimiser, Reweighter and noise around what the setting contributes, on ``device``."""
    learner = given.learner
    torch.manual_seed(given.network_seed)
    trunk = make_trunk(
        run.network, given.example, bn_momentum=run.bn_momentum, dropout=given.dropout, start=given.start
    )
    network = learner.network(trunk, given.num_outputs)
    dtype = torch.float64 if run.precision == "fp64" else None
    network.to(device, dtype)  # after it was drawn: a seed gives the same network everywhere
    compile_trunk(run, learner, trunk, given.example)
    learner.start(network)
    given.batches.placement = Placement(device, dtype)
    scaler = make_scaler(run, learner, device)
    optimizer = make_optimizer(run, network, run.lr or given.lr)
    aux_scale = run.aux_scale if find_facts(run).sets_its_own_scale else run.aux_scale / given.aux_divisor
    reweighter = make_reweighter(run, learner.tasks, trunk, aux_scale=aux_scale, train_on_main=given.train_on_main)
    if reweighter is not None:
        reweighter.loss_scale = scaler
    return Parts(
        network=network,
        learner=learner,
        reweighter=reweighter,
        optimizer=optimizer,
        noise=make_noise(run, optimizer, network, reweighter, num_examples=given.num_examples),
        batches=given.batches,
        generator=draw_source(device, given.draw_seed),
        validation=given.validation,
        test=given.test,
        score=given.score,
        choose_after=given.choose_after,
        yardsticks=given.yardsticks,
        device=device,
        autocast=AUTOCAST.get(run.precision),
        scaler=scaler,
    )


def seed_stream(seed: int, number: int) -> int:
    """The seed of one kind of draw. Each kind has its own, so that a new kind does not change the others."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1)[0])
