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
from arml.lab.divergence import Guard
from arml.lab.learners.base import Learner
from arml.lab.models.network import Network
from arml.lab.run import Run
from arml.lab.shortage import checkpoint_size, explain_shortages
from arml.lab.trace import Record, Trace
from arml.langevin import Langevin
from arml.reweighter import Reweighter

MOST_EXAMPLES, MOST_BYTES = 500, 24 * 2**20
"""Examples that are evaluated together, and their size as float32; feature maps take a multiple of it."""

B = TypeVar("B")
Watch = Callable[[Record], None]
"""Receives every record as it is written, for progress bars."""
Metrics = dict[str, float]
"""The quality of a network, by name; ``"error"``, in %, is always there."""
Evaluate = Callable[[Network], Metrics]
"""Evaluates a network on the validation or the test examples."""


@dataclass
class Parts(Generic[B]):
    """Everything a run trains with, built from its description."""

    network: Network
    learner: Learner[B]
    reweighter: Reweighter | None
    """``None`` for learners without auxiliary losses."""
    optimizer: Optimizer
    noise: Langevin | None
    batches: Batches[B]
    generator: torch.Generator
    """Source of everything the learner draws."""
    validation: Evaluate
    test: Evaluate
    score: Callable[[Metrics], float] | None = itemgetter("error")
    """Chooses the network on validation examples: less is better; ``None``: the last network counts."""
    choose_after: int = 0
    """Only networks after this many steps are candidates: earlier ones are not yet what the learner aims at."""
    yardsticks: Callable[[], Metrics] = dict
    """Measures the errors of simple models with the same labels, by name; none where they make no sense."""


def train(run: Run, parts: Parts[B], folder: Path, *, resume: bool = False, watch: Watch = lambda _: None) -> Record:
    """Trains for ``run.steps`` steps, chooses the network on validation examples, then uses the test examples once."""
    folder.mkdir(parents=True, exist_ok=True)
    state = TrainingState.load(folder, parts) if resume else TrainingState()
    path = folder / "record.jsonl"
    with (
        explain_shortages(folder, checkpoint_size(parts.network)),
        Trace(path, run, state.position) as trace,
        _events(folder, state.step) as events,
    ):

        def record(line: Record) -> None:
            trace.write(line)
            _add_scalars(events, line)
            watch(line)

        guard = Guard(run.on_nan, state, trace.write)
        parts.network.train()
        for step in range(state.step, run.steps):
            set_lr(parts.optimizer, run, step)
            line = _take_step(parts, step, guard, recorded=(step + 1) % run.record_every == 0)
            if line is not None:
                record(line)
            if (step + 1) % run.evaluate_every == 0 or step + 1 == run.steps:
                guard.check_network(step + 1, parts.network)
                record(state.evaluate(step + 1, parts))
            if (step + 1) % run.checkpoint_every == 0 or step + 1 == run.steps:
                state.save(folder, parts, step + 1, trace)
        outcome = _final_record(state, parts)
        guard.check_outcome(outcome)
        record(outcome)
    (folder / "done").touch()
    return outcome


class StepLosses(NamedTuple):
    """The losses of one step."""

    main: Tensor | None
    """``None`` if the batch has no main label."""
    aux: dict[str, Tensor]

    def by_name(self) -> dict[str, Tensor]:
        """All of them, the main one first."""
        return ({} if self.main is None else {"main": self.main}) | self.aux


def losses_of(parts: Parts[B], step: int) -> StepLosses:
    """The losses on the next batch."""
    return StepLosses(*parts.learner.losses(parts.network, parts.batches.next(), step, parts.generator))


def descend(parts: Parts[Any], losses: StepLosses, admit: Callable[[Tensor], bool] = lambda joint: True) -> Tensor:
    """One step of the optimiser, which may update the weights of the tasks first; returns the joint loss.

    The step is left out if ``admit`` refuses the joint loss.
    """
    parts.optimizer.zero_grad()
    joint = _fill_gradients(parts.reweighter, losses)
    if admit(joint):
        parts.optimizer.step()
        parts.learner.after_step(parts.network)
    return joint


def _fill_gradients(reweighter: Reweighter | None, losses: StepLosses) -> Tensor:
    if reweighter is not None:
        return reweighter.backward(losses.main, losses.aux)
    if losses.main is None:
        raise ValueError("There is nothing to learn from: no auxiliary task, and no label of the main task.")
    losses.main.backward()
    return losses.main.detach()


def _take_step(parts: Parts[Any], step: int, guard: Guard, *, recorded: bool) -> Record | None:
    """One step, and its record if it has one. The graph of the losses ends with this function."""
    losses = losses_of(parts, step)
    agreement = _agreement(parts, losses) if recorded else {}
    descend(parts, losses, lambda joint: guard.admit(step + 1, losses.by_name(), joint, parts.network.parameters()))
    return _step_record(step + 1, parts, losses, agreement) if recorded else None


@dataclass
class TrainingState:
    """The progress of a run, and its best network so far on validation examples (the earliest on a tie)."""

    step: int = 0
    position: int = 0
    """Position of the next line in the record."""
    best_step: int = 0
    best_score: float = float("inf")
    best_metrics: Metrics = field(default_factory=dict)
    best_network: dict[str, Tensor] | None = None
    skipped: int = 0
    """Steps left out in a row because a loss was not finite."""

    def evaluate(self, step: int, parts: Parts[Any]) -> Record:
        """Evaluates the network on validation examples after ``step``, and remembers it if it is the best."""
        metrics = _evaluate(parts.network, parts.validation)
        score = -math.inf if parts.score is None else parts.score(metrics)
        if step > parts.choose_after and (parts.score is None or score < self.best_score):
            self.best_step, self.best_score, self.best_metrics = step, score, metrics
            self.best_network = {name: value.clone() for name, value in parts.network.state_dict().items()}
        return {"step": step, **_add_prefix("validation", metrics)}

    def save(self, folder: Path, parts: Parts[Any], step: int, trace: Trace) -> None:
        """Writes everything that later steps depend on; a crash leaves the old checkpoint or the new one, complete."""
        self.step, self.position = step, trace.position()
        state = {name: part.state_dict() for name, part in _stateful_parts(parts).items()}
        state |= {"progress": vars(self), "generator": parts.generator.get_state(), "random": torch.get_rng_state()}
        unfinished = folder / "checkpoint.pt.part"
        with unfinished.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(folder / "checkpoint.pt")

    @staticmethod
    def load(folder: Path, parts: Parts[Any]) -> "TrainingState":
        """The state of the last checkpoint, which is also loaded into ``parts``; a fresh start if there is none."""
        path = folder / "checkpoint.pt"
        if not path.exists():
            return TrainingState()
        state = torch.load(path, weights_only=True)
        for name, part in _stateful_parts(parts).items():
            part.load_state_dict(state[name])
        parts.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])
        return TrainingState(**state["progress"])


def outputs_of(network: nn.Module, x: Tensor, rows: Tensor, preprocess: Callable[[Tensor], Tensor]) -> Tensor:
    """The outputs of ``network`` for these rows of ``x``, without graph, in parts that fit into memory."""
    bytes_per_example = 4 * x[:1].numel()  # preprocessed, in float32
    size = min(MOST_EXAMPLES, max(1, MOST_BYTES // bytes_per_example))
    with torch.no_grad():
        return torch.cat([network(preprocess(x[part])) for part in rows.split(size)])


def error_rate(
    network: nn.Module, images: Images, preprocess: Callable[[Tensor], Tensor], rows: Tensor | None = None
) -> float:
    """The percentage of ``images``, or of these rows of them, that are classified wrongly."""
    rows = torch.arange(len(images.y)) if rows is None else rows
    return 100 * float((outputs_of(network, images.x, rows, preprocess).argmax(1) != images.y[rows]).double().mean())


def _evaluate(network: Network, evaluate: Evaluate) -> Metrics:
    was_training = network.training
    network.eval()
    metrics = evaluate(network)
    network.train(was_training)
    return metrics


def _add_prefix(examples: str, metrics: Metrics) -> Record:
    return {f"{examples}_{name}": value for name, value in metrics.items()}


def _stateful_parts(parts: Parts[Any]) -> dict[str, Any]:
    named = {
        "network": parts.network,
        "learner": parts.learner,
        "reweighter": parts.reweighter,
        "optimizer": parts.optimizer,
        "noise": parts.noise,
        "batches": parts.batches,
    }
    return {name: part for name, part in named.items() if part is not None}


def set_lr(optimizer: Optimizer, run: Run, step: int) -> None:
    """Sets the step size that ``run`` has at ``step``."""
    drops = sum(step >= share * run.steps for share in run.lr_drop_at)
    for group in optimizer.param_groups:
        group["lr"] = optimizer.defaults["lr"] * run.lr_drop**drops


def _agreement(parts: Parts[Any], losses: StepLosses) -> dict[str, float]:
    """<g_0, g_k> / <g_0, g_0> for every auxiliary task, before the step; empty if there is nothing to compare."""
    if parts.reweighter is None or losses.main is None:
        return {}
    towards_main = torch.eye(1, 1 + len(losses.aux))
    products = alignment([losses.main, *losses.aux.values()], parts.network.trunk, towards_main)[0]
    agreement = (products[1:] / products[0].clamp(min=1e-30)).tolist()
    return dict(zip(losses.aux, agreement, strict=True))


def _step_record(step: int, parts: Parts[Any], losses: StepLosses, agreement: dict[str, float]) -> Record:
    """Losses, the weights that the step used, and agreement."""
    record: Record = {"step": step, "losses": {name: float(loss.detach()) for name, loss in losses.by_name().items()}}
    if parts.reweighter is None:
        return record
    record["weights"] = parts.reweighter.weights
    return record | {"agreement": agreement} if losses.main is not None else record


def _final_record(state: TrainingState, parts: Parts[Any]) -> Record:
    last = _evaluate(parts.network, parts.test)
    if state.best_network is not None:
        parts.network.load_state_dict(state.best_network)
    yardsticks = parts.yardsticks()
    return {
        "step": state.best_step,
        **_add_prefix("validation", state.best_metrics),
        **_add_prefix("test", _evaluate(parts.network, parts.test)),
        "test_error_last": last["error"],
        "weights": parts.reweighter.weights if parts.reweighter is not None else {},
        **({"yardsticks": yardsticks} if yardsticks else {}),
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
