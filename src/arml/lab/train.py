"""The loop: batch, losses, weights, backward, step, record. Evaluation and checkpoints."""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.tensorboard import SummaryWriter

from arml.gradients import alignment
from arml.lab.data.base import Images
from arml.lab.data.batches import Batches
from arml.lab.learners.base import Learner
from arml.lab.models.network import Network
from arml.lab.run import Run
from arml.lab.trace import Record, Trace
from arml.langevin import Langevin
from arml.reweighter import Reweighter

B = TypeVar("B")
Watch = Callable[[Record], None]
"""Is shown every record as it is written, for progress bars."""
Metrics = dict[str, float]
"""How good a network is, by name; ``"error"``, in %, is always there."""
Evaluate = Callable[[Network], Metrics]
"""Looks at the validation or the test examples."""


@dataclass
class Parts(Generic[B]):
    """Everything a run trains with, made from its description."""

    network: Network
    learner: Learner[B]
    reweighter: Reweighter | None
    """``None`` for learners without auxiliary losses."""
    optimizer: Optimizer
    noise: Langevin | None
    batches: Batches[B]
    generator: torch.Generator
    """Of everything the learner draws."""
    validation: Evaluate
    test: Evaluate
    score: Callable[[Metrics], float] | None = itemgetter("error")
    """What the network is chosen by on validation examples: less is better; ``None``: the last network counts."""
    choose_after: int = 0
    """Networks are chosen among those after this many steps: earlier ones are not what the learner is after."""


def train(run: Run, parts: Parts[B], folder: Path, *, resume: bool = False, watch: Watch = lambda _: None) -> Record:
    """Trains until ``run.steps``, chooses the network on validation examples, and looks at the test examples once."""
    folder.mkdir(parents=True, exist_ok=True)
    progress = Progress.load(folder, parts) if resume else Progress()
    path = folder / "record.jsonl"
    with Trace(path, run, progress.position) as trace, _events(folder, progress.step) as events:

        def record(line: Record) -> None:
            trace.write(line)
            _add_scalars(events, line)
            watch(line)

        parts.network.train()
        for step in range(progress.step, run.steps):
            _set_lr(parts.optimizer, run, step)
            losses = losses_of(parts, step)
            if (step + 1) % run.record_every == 0:
                record(_seen(step + 1, parts, losses))
            descend(parts, losses.joint)
            if (step + 1) % run.evaluate_every == 0 or step + 1 == run.steps:
                record(progress.evaluated(step + 1, parts))
            if (step + 1) % run.checkpoint_every == 0 or step + 1 == run.steps:
                progress.save(folder, parts, step + 1, trace)
        outcome = _tested(progress, parts)
        record(outcome)
    (folder / "done").touch()
    return outcome


class Losses(NamedTuple):
    """Of one step."""

    joint: Tensor
    """What is minimised."""
    main: Tensor | None
    """``None`` if the batch has no main label."""
    aux: dict[str, Tensor]


def losses_of(parts: Parts[B], step: int) -> Losses:
    """The losses on the next batch; may update the weights."""
    main, aux = parts.learner.losses(parts.network, parts.batches.next(), step, parts.generator)
    if parts.reweighter is not None:
        return Losses(parts.reweighter(main, aux), main, aux)
    if main is None:
        raise ValueError("There is nothing to learn from: no auxiliary task, and no label of the main task.")
    return Losses(main, main, aux)


def descend(parts: Parts[Any], loss: Tensor) -> None:
    """One step of the optimiser."""
    parts.optimizer.zero_grad()
    loss.backward()
    parts.optimizer.step()
    parts.learner.after_step(parts.network)


@dataclass
class Progress:
    """How far a run is, and the best network so far on validation examples (the earliest on a tie)."""

    step: int = 0
    position: int = 0
    """Where in the record the next line goes."""
    best_step: int = 0
    best_score: float = float("inf")
    best_metrics: Metrics = field(default_factory=dict)
    best_network: dict[str, Tensor] | None = None

    def evaluated(self, step: int, parts: Parts[Any]) -> Record:
        """What is found on validation examples after ``step``, remembered if it is the best."""
        metrics = _evaluated(parts.network, parts.validation)
        score = -math.inf if parts.score is None else parts.score(metrics)
        if step > parts.choose_after and (parts.score is None or score < self.best_score):
            self.best_step, self.best_score, self.best_metrics = step, score, metrics
            self.best_network = {name: value.clone() for name, value in parts.network.state_dict().items()}
        return {"step": step, **_named("validation", metrics)}

    def save(self, folder: Path, parts: Parts[Any], step: int, trace: Trace) -> None:
        """Writes everything that later steps depend on; a crash leaves the old checkpoint or the new one, whole."""
        self.step, self.position = step, trace.position()
        state = {name: part.state_dict() for name, part in _stateful(parts).items()}
        state |= {"progress": vars(self), "generator": parts.generator.get_state(), "random": torch.get_rng_state()}
        unfinished = folder / "checkpoint.pt.part"
        with unfinished.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder / "checkpoint.pt")

    @staticmethod
    def load(folder: Path, parts: Parts[Any]) -> "Progress":
        """The progress of the last checkpoint, with ``parts`` as they were; a fresh start if there is none."""
        path = folder / "checkpoint.pt"
        if not path.exists():
            return Progress()
        state = torch.load(path, weights_only=True)
        for name, part in _stateful(parts).items():
            part.load_state_dict(state[name])
        parts.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])
        return Progress(**state["progress"])


def outputs_of(network: nn.Module, x: Tensor, rows: Tensor, preprocess: Callable[[Tensor], Tensor]) -> Tensor:
    """What ``network`` answers for these rows of ``x``, without graph, in parts that fit into memory."""
    with torch.no_grad():
        return torch.cat([network(preprocess(x[part])) for part in rows.split(500)])


def error_rate(
    network: nn.Module, images: Images, preprocess: Callable[[Tensor], Tensor], rows: Tensor | None = None
) -> float:
    """Percentage of ``images``, or of these rows of them, that are classified wrongly."""
    rows = torch.arange(len(images.y)) if rows is None else rows
    return 100 * float((outputs_of(network, images.x, rows, preprocess).argmax(1) != images.y[rows]).double().mean())


def _evaluated(network: Network, evaluate: Evaluate) -> Metrics:
    was_training = network.training
    network.eval()
    metrics = evaluate(network)
    network.train(was_training)
    return metrics


def _named(examples: str, metrics: Metrics) -> Record:
    return {f"{examples}_{name}": value for name, value in metrics.items()}


def _stateful(parts: Parts[Any]) -> dict[str, Any]:
    named = {
        "network": parts.network,
        "learner": parts.learner,
        "reweighter": parts.reweighter,
        "optimizer": parts.optimizer,
        "noise": parts.noise,
        "batches": parts.batches,
    }
    return {name: part for name, part in named.items() if part is not None}


def _set_lr(optimizer: Optimizer, run: Run, step: int) -> None:
    drops = sum(step >= share * run.steps for share in run.lr_drop_at)
    for group in optimizer.param_groups:
        group["lr"] = optimizer.defaults["lr"] * run.lr_drop**drops


def _seen(step: int, parts: Parts[Any], losses: Losses) -> Record:
    """Losses, weights and agreement <g_0, g_k> / <g_0, g_0> of this step."""
    named = ({"main": losses.main} if losses.main is not None else {}) | losses.aux
    record: Record = {"step": step, "losses": {name: float(loss.detach()) for name, loss in named.items()}}
    if parts.reweighter is None:
        return record
    record["weights"] = parts.reweighter.weights
    if losses.main is None:
        return record
    towards_main = torch.eye(1, 1 + len(losses.aux))
    products = alignment([losses.main, *losses.aux.values()], parts.network.trunk, towards_main)[0]
    agreement = (products[1:] / products[0].clamp(min=1e-30)).tolist()
    return record | {"agreement": dict(zip(losses.aux, agreement, strict=True))}


def _tested(progress: Progress, parts: Parts[Any]) -> Record:
    last = _evaluated(parts.network, parts.test)
    if progress.best_network is not None:
        parts.network.load_state_dict(progress.best_network)
    return {
        "step": progress.best_step,
        **_named("validation", progress.best_metrics),
        **_named("test", _evaluated(parts.network, parts.test)),
        "test_error_last": last["error"],
        "weights": parts.reweighter.weights if parts.reweighter is not None else {},
    }


@contextmanager
def _events(folder: Path, step: int) -> Iterator[SummaryWriter]:
    writer = SummaryWriter(str(folder / "tensorboard"), purge_step=step)
    try:
        yield writer
    finally:
        writer.close()


def _add_scalars(events: SummaryWriter, record: Record) -> None:
    for key, value in record.items():
        if isinstance(value, dict):
            for name, number in value.items():
                events.add_scalar(f"{key}/{name}", number, record["step"])
        elif key != "step":
            events.add_scalar(key, value, record["step"])
