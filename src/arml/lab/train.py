"""The loop: batch, losses, weights, backward, step, record. Evaluation and checkpoints."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam
from torch.utils.tensorboard import SummaryWriter

from arml.gradients import alignment
from arml.lab.data.base import Images
from arml.lab.data.batches import Sampler
from arml.lab.learners.base import Batch, Learner
from arml.lab.models.network import Network
from arml.lab.run import Run
from arml.lab.trace import Record, Trace
from arml.langevin import Langevin
from arml.reweighter import Reweighter

Watch = Callable[[Record], None]
"""Is shown every record as it is written, for progress bars."""


@dataclass
class Parts:
    """Everything a run trains with, made from its description."""

    network: Network
    learner: Learner
    reweighter: Reweighter | None
    """``None`` for learners without auxiliary losses."""
    optimizer: Adam
    noise: Langevin | None
    labelled: Sampler
    unlabelled: Sampler
    generator: torch.Generator
    """Of everything the learner draws."""
    train: Images
    validation: Images
    test: Images
    preprocess: Callable[[Tensor], Tensor]

    def batch(self) -> Batch:
        """The next labelled and unlabelled images."""
        chosen, pool = next(self.labelled), next(self.unlabelled)
        x, y = self.train.x[chosen], self.train.y[chosen]
        return Batch(self.preprocess(x), y, self.preprocess(self.train.x[pool]))


def train(run: Run, parts: Parts, folder: Path, *, resume: bool = False, watch: Watch = lambda _: None) -> Record:
    """Trains until ``run.steps``, chooses the network by its validation error, and looks at the test images once."""
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
            main, aux = parts.learner.losses(parts.network, parts.batch(), step, parts.generator)
            loss = parts.reweighter(main, aux) if parts.reweighter is not None else main
            if (step + 1) % run.record_every == 0:
                record(_seen(step + 1, parts, main, aux))
            parts.optimizer.zero_grad()
            loss.backward()
            parts.optimizer.step()
            parts.learner.after_step(parts.network)
            if (step + 1) % run.evaluate_every == 0 or step + 1 == run.steps:
                record(progress.evaluated(step + 1, parts))
            if (step + 1) % run.checkpoint_every == 0 or step + 1 == run.steps:
                progress.save(folder, parts, step + 1, trace)
        outcome = _tested(progress, parts)
        record(outcome)
    (folder / "done").touch()
    return outcome


@dataclass
class Progress:
    """How far a run is, and the best network so far by validation error (the earliest on a tie)."""

    step: int = 0
    position: int = 0
    """Where in the record the next line goes."""
    best_step: int = 0
    best_error: float = float("inf")
    best_network: dict[str, Tensor] | None = None

    def evaluated(self, step: int, parts: Parts) -> Record:
        """The validation error after ``step``, remembered if it is the best."""
        error = error_rate(parts.network, parts.validation, parts.preprocess)
        if error < self.best_error:
            self.best_step, self.best_error = step, error
            self.best_network = {name: value.clone() for name, value in parts.network.state_dict().items()}
        return {"step": step, "validation_error": error}

    def save(self, folder: Path, parts: Parts, step: int, trace: Trace) -> None:
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
    def load(folder: Path, parts: Parts) -> "Progress":
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


def error_rate(network: nn.Module, images: Images, preprocess: Callable[[Tensor], Tensor]) -> float:
    """Percentage of ``images`` that are classified wrongly."""
    was_training = network.training
    network.eval()
    with torch.no_grad():
        parts = zip(images.x.split(500), images.y.split(500), strict=True)
        wrong = sum(int((network(preprocess(x)).argmax(1) != y).sum()) for x, y in parts)
    network.train(was_training)
    return 100 * wrong / len(images.y)


def _stateful(parts: Parts) -> dict[str, Any]:
    named = {
        "network": parts.network,
        "learner": parts.learner,
        "reweighter": parts.reweighter,
        "optimizer": parts.optimizer,
        "noise": parts.noise,
        "labelled": parts.labelled,
        "unlabelled": parts.unlabelled,
    }
    return {name: part for name, part in named.items() if part is not None}


def _set_lr(optimizer: Adam, run: Run, step: int) -> None:
    for group in optimizer.param_groups:
        group["lr"] = optimizer.defaults["lr"] * (run.lr_drop if step >= run.lr_drop_at * run.steps else 1)


def _seen(step: int, parts: Parts, main: Tensor, aux: dict[str, Tensor]) -> Record:
    """Losses, weights and agreement <g_0, g_k> / <g_0, g_0> of this step."""
    record: Record = {"step": step, "losses": {"main": float(main.detach())}}
    if parts.reweighter is None:
        return record
    record["losses"] |= {name: float(loss.detach()) for name, loss in aux.items()}
    towards_main = torch.eye(1, 1 + len(aux))
    products = alignment([main, *aux.values()], parts.network.trunk, towards_main)[0]
    agreement = (products[1:] / products[0].clamp(min=1e-30)).tolist()
    return record | {"weights": parts.reweighter.weights, "agreement": dict(zip(aux, agreement, strict=True))}


def _tested(progress: Progress, parts: Parts) -> Record:
    last = error_rate(parts.network, parts.test, parts.preprocess)
    if progress.best_network is not None:
        parts.network.load_state_dict(progress.best_network)
    chosen = error_rate(parts.network, parts.test, parts.preprocess)
    return {
        "step": progress.best_step,
        "validation_error": progress.best_error,
        "test_error": chosen,
        "test_error_last": last,
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
