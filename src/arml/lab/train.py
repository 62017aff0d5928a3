"""The loop: batch, losses, weights, backward, step, record. Evaluation and checkpoints."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import Optimizer

from arml._distributed import average_buffers, gather, mean_of_numbers, num_processes, process_rank
from arml.lab.agreement import measure_agreement
from arml.lab.checkpoint import Checkpoint, CheckpointError, read_checkpoint, write_checkpoint
from arml.lab.data.base import Images
from arml.lab.data.batches import Batches
from arml.lab.data.draws import draw_part
from arml.lab.divergence import Guard
from arml.lab.hardware import CPU, describe_device, random_state, set_random_state
from arml.lab.journal import Journal, Watch
from arml.lab.learners.base import Learner
from arml.lab.models.network import Network
from arml.lab.processes import check_sharing, make_losses, present_processes, seed_step
from arml.lab.run import Run
from arml.lab.run_folder import RECORD, clear, mark_done, measure_prefix
from arml.lab.shortage import checkpoint_size, explain_shortages
from arml.lab.stopping import Stop, Stopped
from arml.lab.trace import Record, Trace
from arml.langevin import Langevin
from arml.precision import read_scale
from arml.reweighter import Reweighter

AGREE_EVERY = 10
"""Steps between two moments at which several processes tell each other of a request to stop."""
LOOK_EVERY = 20
"""Steps between two looks at a loss on an accelerator, where looking means to wait for it."""
MOST_EXAMPLES, MOST_BYTES = 500, 24 * 2**20
"""Examples that are evaluated together, and their size as float32; feature maps take a multiple of it."""

B = TypeVar("B")
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
    device: torch.device = CPU
    """Where the network is."""
    autocast: torch.dtype | None = None
    """The precision of passes, if it is lower than that of the parameters."""
    scaler: GradScaler | None = None
    """Multiplies losses, so that gradients in float16 do not vanish."""

    def __post_init__(self) -> None:
        self.losses = make_losses(self.network, self.learner, self.device)


def train(
    run: Run,
    parts: Parts[B],
    folder: Path,
    *,
    resume: bool = False,
    watch: Watch = lambda _: None,
    stop: Stop | None = None,
    after_checkpoint: Callable[[], None] = lambda: None,
) -> Record:
    """Trains for ``run.steps`` steps, chooses the network on validation examples, then uses the test examples once.

    Inside ``torch.distributed``, all processes train this run together, and the first one writes.

    Raises:
        Stopped: If ``stop`` asked for it, after a checkpoint.
    """
    part = present_processes()
    check_sharing(parts.learner, part)
    state = TrainingState.load(folder, run, parts) if resume else TrainingState()
    if not state.position and part.rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
        clear(folder)
    hardware = {"device": describe_device(parts.device), "precision": run.precision, "processes": str(part.of)}
    where = {"step": state.step, "position": state.position}
    with (
        explain_shortages(folder, checkpoint_size(parts.network)),
        Journal(folder, run, watch, hardware=hardware, **where) as journal,
        draw_part(part),
    ):
        guard = Guard(run.on_nan, state, journal.note, every=1 if parts.device == CPU else LOOK_EVERY)
        parts.network.train()
        for step in range(state.step, run.steps):
            set_lr(parts.optimizer, run, step)
            seed_step(run.seed, step, part)
            line = _take_step(parts, step, guard, recorded=(step + 1) % run.record_every == 0)
            if line is not None:
                journal.write(line)
            if (step + 1) % run.evaluate_every == 0 or step + 1 == run.steps:
                guard.check_network(step + 1, parts.network)
                journal.write(state.evaluate(step + 1, parts))
            asked = _agree_on_stop(stop, step)
            if (step + 1) % run.checkpoint_every == 0 or step + 1 == run.steps or asked:
                average_buffers(parts.network)
                if journal.trace is not None:
                    state.save(folder, parts, step + 1, journal.trace)
                    after_checkpoint()
            if asked:
                raise Stopped(asked, f"stopped after step {step + 1} of {run.steps}, with a checkpoint in {folder}")
        outcome: Record = gather(_final_record(state, parts, run.steps))[0]
        guard.check_outcome(outcome)
        journal.write(outcome)
        if journal.trace is not None:
            journal.trace.position()  # on disk before the run counts as complete
    if journal.trace is not None:
        mark_done(folder)
        after_checkpoint()
    return outcome


def _agree_on_stop(stop: Stop | None, step: int) -> int:
    """The signal that asks for a stop, 0 for none. Several processes must stop at the same step, so they agree."""
    mine = 0 if stop is None else stop.reason
    if num_processes() == 1:
        return mine
    return max(gather(mine)) if (step + 1) % AGREE_EVERY == 0 else 0


class StepLosses(NamedTuple):
    """The losses of one step."""

    main: Tensor | None
    """``None`` if the batch has no main label."""
    aux: dict[str, Tensor]

    def by_name(self) -> dict[str, Tensor]:
        """All of them, the main one first."""
        return ({} if self.main is None else {"main": self.main}) | self.aux


def losses_of(parts: Parts[B], step: int) -> StepLosses:
    """The losses on the next batch, or on this process's part of it."""
    batch = parts.batches.next()
    with autocast_of(parts):
        return StepLosses(*parts.losses(batch, step, parts.generator))


def autocast_of(parts: Parts[Any]) -> AbstractContextManager[Any]:
    """The precision of the passes of a run."""
    return nullcontext() if parts.autocast is None else torch.autocast(parts.device.type, parts.autocast)


def descend(parts: Parts[Any], losses: StepLosses, admit: Callable[[Tensor], bool] = lambda joint: True) -> Tensor:
    """One step of the optimiser, which may update the weights of the tasks first; returns the joint loss.

    The step is left out if ``admit`` refuses the joint loss.
    """
    parts.optimizer.zero_grad()
    joint = _fill_gradients(parts, losses)
    if admit(joint):
        _move(parts)
    return joint


def _move(parts: Parts[Any]) -> None:
    if parts.scaler is None:
        parts.optimizer.step()
    else:
        parts.scaler.step(parts.optimizer)
        parts.scaler.update()
    parts.learner.after_step(parts.network)


def _fill_gradients(parts: Parts[Any], losses: StepLosses) -> Tensor:
    if parts.reweighter is not None:
        return parts.reweighter.backward(losses.main, losses.aux, scaler=parts.scaler)
    if losses.main is None:
        raise ValueError("There is nothing to learn from: no auxiliary task, and no label of the main task.")
    scaled: Tensor = losses.main if parts.scaler is None else parts.scaler.scale(losses.main)
    scaled.backward()
    return losses.main.detach()


def _take_step(parts: Parts[Any], step: int, guard: Guard, *, recorded: bool) -> Record | None:
    """One step, and its record if it has one. The graph of the losses ends with this function."""
    losses = losses_of(parts, step)
    agreement = _agreement(parts, losses) if recorded else {}
    # Gradients that overflow in float16 are the scaler's business.
    parameters = () if parts.scaler is not None else parts.network.parameters()
    descend(parts, losses, lambda joint: guard.admit(step + 1, losses.by_name(), joint, parameters))
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
        average_buffers(parts.network)
        metrics = gather(_evaluate(parts.network, parts.validation))[0]  # devices may round differently
        score = -math.inf if parts.score is None else parts.score(metrics)
        if step > parts.choose_after and (parts.score is None or score < self.best_score):
            self.best_step, self.best_score, self.best_metrics = step, score, metrics
            self.best_network = {name: value.clone() for name, value in parts.network.state_dict().items()}
        return {"step": step, **_add_prefix("validation", metrics)}

    def save(self, folder: Path, parts: Parts[Any], step: int, trace: Trace) -> None:
        """Writes everything that later steps depend on, and which record they belong to."""
        self.step, self.position = step, trace.position()
        state = {name: part.state_dict() for name, part in _stateful_parts(parts).items()}
        state |= {"progress": vars(self), "generator": parts.generator.get_state(), "random": torch.get_rng_state()}
        state |= {"device": parts.device.type, "device_random": random_state(parts.device)}
        record = measure_prefix(folder / RECORD, self.position)
        write_checkpoint(folder, Checkpoint(trace.run.name(), record, state))

    @staticmethod
    def load(folder: Path, run: Run, parts: Parts[Any]) -> "TrainingState":
        """The state of the last checkpoint, which is also loaded into ``parts``; a fresh start if there is none."""
        checkpoint = read_checkpoint(folder, run.name())
        if checkpoint is None:
            return TrainingState()
        state = checkpoint.state
        _check_device(folder, state.get("device", "cpu"), parts.device.type)
        for name, part in _stateful_parts(parts).items():
            _restore(folder, name, part, state)
        parts.generator.set_state(state["generator"])
        torch.set_rng_state(state["random"])
        if state.get("device_random") is not None:
            set_random_state(parts.device, state["device_random"])
        return TrainingState(**state["progress"])


def _restore(folder: Path, name: str, part: Any, state: dict[str, Any]) -> None:
    try:
        part.load_state_dict(state[name])
    except (KeyError, ValueError, RuntimeError) as error:  # PyTorch raises the last two for other layers
        raise CheckpointError(
            f"The checkpoint in {folder} was written by another version of arml, whose {name} was made otherwise. "
            "Continue the run with that version; to start it again, remove the folder."
        ) from error


def _check_device(path: Path, before: str, now: str) -> None:
    """Random numbers of one kind of device cannot be continued on another."""
    if before != now:
        raise ValueError(
            f"{path} was written on {before}, and this is {now}: random numbers cannot go on there. Resume with "
            f"--device {before}, or leave --resume out to start again."
        )


def outputs_of(network: nn.Module, x: Tensor, rows: Tensor, preprocess: Callable[[Tensor], Tensor]) -> Tensor:
    """The outputs of ``network`` for these rows of ``x``, without graph, in parts that fit into memory; on the CPU."""
    bytes_per_example = 4 * x[:1].numel()  # preprocessed, in float32
    size = min(MOST_EXAMPLES, max(1, MOST_BYTES // bytes_per_example))
    with torch.no_grad():
        return torch.cat([network(send(preprocess, x[part], network)) for part in rows.split(size)]).cpu()


def send(preprocess: Callable[[Tensor], Tensor], x: Tensor, network: nn.Module) -> Tensor:
    """Preprocessed examples on the device of ``network``, in its precision."""
    parameter = next(network.parameters(), None)
    if parameter is None:
        return preprocess(x)
    return preprocess(x.to(parameter.device, non_blocking=True)).to(parameter.dtype)


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
        "scaler": parts.scaler,
    }
    return {name: part for name, part in named.items() if part is not None}


def set_lr(optimizer: Optimizer, run: Run, step: int) -> None:
    """Sets the step size that ``run`` has at ``step``."""
    drops = sum(step >= share * run.steps for share in run.lr_drop_at)
    for group in optimizer.param_groups:
        group["lr"] = optimizer.defaults["lr"] * run.lr_drop**drops


def _agreement(parts: Parts[Any], losses: StepLosses) -> Record:
    """How every auxiliary gradient agrees with the main one, before the step; empty if there is nothing to compare."""
    if parts.reweighter is None or losses.main is None:
        return {}
    scale = read_scale(parts.scaler)  # gradients in float16 would vanish; no ratio depends on it
    aux = {name: scale * loss for name, loss in losses.aux.items()}
    return {**measure_agreement(scale * losses.main, aux, parts.network.trunk)}


def _step_record(step: int, parts: Parts[Any], losses: StepLosses, agreement: Record) -> Record:
    """Losses, the weights that the step used, and agreement."""
    named = losses.by_name()
    means = mean_of_numbers([loss.detach() for loss in named.values()])
    record: Record = {"step": step, "losses": {name: float(loss) for name, loss in zip(named, means, strict=True)}}
    if parts.reweighter is None:
        return record
    record["weights"] = parts.reweighter.weights
    return record | agreement


def _final_record(state: TrainingState, parts: Parts[Any], steps: int) -> Record:
    last = chosen = _evaluate(parts.network, parts.test)
    if state.best_network is not None and state.best_step < steps:
        parts.network.load_state_dict(state.best_network)
        chosen = _evaluate(parts.network, parts.test)
    yardsticks = parts.yardsticks() if process_rank() == 0 else {}
    return {
        "step": state.best_step,
        **_add_prefix("validation", state.best_metrics),
        **_add_prefix("test", chosen),
        "test_error_last": last["error"],
        "weights": parts.reweighter.weights if parts.reweighter is not None else {},
        **({"yardsticks": yardsticks} if yardsticks else {}),
    }
