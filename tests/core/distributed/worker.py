"""One process of a small training run. What every process recorded goes into a JSON file.

One process trains on the whole batch, several on a shard each::

    python worker.py OUTPUT
    python -m torch.distributed.run --standalone --nproc_per_node 3 worker.py OUTPUT

The file maps each scenario and each of its runs to a list with one :class:`Record` per rank.
"""

import gc
import importlib.util
import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any, TypedDict

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import arml
from arml import Convergence, Langevin, Method, Reweighter, alignment, gram, norms
from arml.gradients import double_backward, one_by_one, pairwise

TASKS = ("a", "b", "c", "d")
STEPS = 12
RANK, WORLD = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))

METHODS: dict[str, Method[Any]] = {
    "Uniform": arml.Uniform(),
    "Fixed": arml.Fixed([0.5, 0.0, 2.0, 1.0]),
    "ARML": arml.ARML(lr=0.1),
    "ARML scale_free": arml.ARML(lr=0.1, scale_free=True),
    "ARML shift_clamp": arml.ARML(lr=0.1, projection="shift_clamp"),
    "GatedARML": arml.GatedARML(arml.ARML(lr=0.1), decay=0.5, warmup=2),
    "AdaLoss": arml.AdaLoss(),
    "GradNorm": arml.GradNorm(lr=0.05),
    "GradNorm last layer": arml.GradNorm(lr=0.05, layer="2"),
    "CosineSim": arml.CosineSim(),
    "OLAUX": arml.OLAUX(horizon=2),
    "WeightedCosineSim": arml.WeightedCosineSim(),
    "TAWT": arml.TAWT(lr=0.5),
    "PriPCGrad": arml.PriPCGrad(),
    "AutoLambda": arml.AutoLambda(lr=0.1),
    "AuxiNash": arml.AuxiNash(lr=0.5),
    "DoGE": arml.DoGE(lr=0.5),
    "EXP3": arml.EXP3(),
    "MetaBalance": arml.MetaBalance(),
    "DWA": arml.DWA(temperature=0.1, window=2),
    "UncertaintyWeighting": arml.UncertaintyWeighting(lr=0.1),
    "FAMO": arml.FAMO(lr=0.1),
    "Agreement": arml.Agreement(warmup=2),
}
if importlib.util.find_spec("torchjd"):
    from torchjd.aggregation import UPGradWeighting
    from torchjd.scalarization import UW

    METHODS["TorchJD"] = arml.TorchJD(UPGradWeighting())
    METHODS["TorchJDScalarizer"] = arml.TorchJDScalarizer(UW(1 + len(TASKS)), lr=0.1)

Losses = tuple[Tensor | None, dict[str, Tensor]]


class Record(TypedDict):
    """What one rank recorded of one run."""

    weights: list[list[float]]
    """After each call of the reweighter, main task first (or other rows with one number per task)."""
    parameters: list[float]
    """All of the model's, at the end."""
    notes: list[str]
    """Warnings, and whatever else the scenario records."""


class Net(nn.Module):
    """A trunk and one head per task."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 6), nn.Tanh())
        self.heads = nn.ModuleDict({name: nn.Linear(6, 1) for name in ("main", *TASKS)})

    def forward(self, x: Tensor, tasks: Iterable[str] = ("main", *TASKS)) -> dict[str, Tensor]:
        features = self.trunk(x)
        return {name: self.heads[name](features).squeeze(-1) for name in tasks}


def whole_batch(step: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Inputs [12, 5] and targets [12]: a helps the main task, b contradicts it, c is related, d is noise."""
    draw = torch.Generator().manual_seed(step)
    x = torch.randn(12, 5, generator=draw, dtype=torch.float64)
    noise = torch.randn(12, generator=draw, dtype=torch.float64)
    main = x[:, 0] + x[:, 1].sin()
    return x, {"main": main, "a": main + 0.3 * noise, "b": -main, "c": x[:, 1] * x[:, 2], "d": noise}


def shard(step: int, *, rank: int = RANK, world: int = WORLD) -> tuple[Tensor, dict[str, Tensor]]:
    """This process's part of the whole batch."""
    x, targets = whole_batch(step)
    return x.chunk(world)[rank], {name: target.chunk(world)[rank] for name, target in targets.items()}


def losses_of(model: nn.Module, x: Tensor, targets: dict[str, Tensor]) -> Losses:
    """Mean squared errors of all tasks."""
    outputs = model(x)
    losses = {name: (outputs[name] - target).square().mean() for name, target in targets.items()}
    return losses.pop("main"), losses


class Training:
    """A model, wrapped as its user would if there are several processes, and what trains it."""

    def __init__(
        self,
        method: Method[Any],
        *,
        seed: int = 0,
        unused: bool = False,
        adam: bool = False,
        by_parameters: bool = False,
        **settings: Any,
    ) -> None:
        torch.manual_seed(seed)
        self.net = Net().double()
        self.model = DistributedDataParallel(self.net, find_unused_parameters=unused) if WORLD > 1 else self.net
        sgd = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.5)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.02) if adam else sgd
        shared = self.net.trunk.parameters() if by_parameters else self.net.trunk
        self.reweighter = Reweighter(method, TASKS, shared, **{"every": 1, **settings})
        self.weights: list[list[float]] = []

    def joint(self, *args: Any, **kwargs: Any) -> Tensor:
        """The joint loss; the weights it was made with are recorded."""
        loss: Tensor = self.reweighter(*args, **kwargs)
        self.weights.append([self.reweighter.main_weight, *self.reweighter.weights.values()])
        return loss

    def step(self, loss: Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def record(self, *notes: str) -> Record:
        parameters = torch.cat([p.detach().flatten() for p in self.net.parameters()])
        return Record(weights=self.weights, parameters=parameters.tolist(), notes=list(notes))


def train(method: Method[Any], **settings: Any) -> Record:
    """The plainest loop."""
    training = Training(method, **settings)
    for step in range(STEPS):
        training.step(training.joint(*losses_of(training.model, *shard(step))))
    return training.record()


def methods() -> Iterator[tuple[str, Record]]:
    """Every method, measuring at every second call; ``accumulation`` and ``nan`` measure at every call."""
    for name, method in METHODS.items():
        yield name, train(method, every=2)


def measures() -> Iterator[tuple[str, Record]]:
    """The functions that measure gradients, called without a reweighter."""
    training = Training(METHODS["ARML"])
    main, aux = losses_of(training.model, *shard(0))
    losses, directions = torch.stack([main, *aux.values()]), torch.tensor([[1.0, -1, 0.5, 2, -0.1], [1.0, 0, 0, 0, 0]])
    for name, rows in {
        "alignment": alignment(losses, training.net.trunk, directions),
        "gram": gram(losses, training.net.trunk),
        "norms": norms(losses, training.net.trunk).unsqueeze(0),
    }.items():
        yield name, Record(weights=rows.tolist(), parameters=[], notes=[])


def engines() -> Iterator[tuple[str, Record]]:
    """Every engine."""
    for name in ("ARML", "GatedARML"):
        for engine in (pairwise, one_by_one, double_backward):
            yield f"{name}, {engine.__name__}", train(METHODS[name], engine=engine)
        for by_parameters in (False, True):
            kind = "central differences" if by_parameters else "dual numbers"
            for through in ("wrapped model", "module inside", "nothing but the closure"):
                record = train_with_closure(METHODS[name], through, by_parameters=by_parameters)
                yield f"{name}, {kind}, {through}", record


def train_with_closure(method: Method[Any], through: str, *, by_parameters: bool) -> Record:
    """The closure calls the wrapped model or the module inside it, or is all that is given."""
    training = Training(method, by_parameters=by_parameters)
    for step in range(STEPS):
        x, targets = shard(step)
        model = training.net if through == "module inside" else training.model

        def closure(model: nn.Module = model, x: Tensor = x, targets: dict[str, Tensor] = targets) -> Losses:
            return losses_of(model, x, targets)

        given = () if through == "nothing but the closure" else losses_of(training.model, x, targets)
        training.step(training.joint(*given, closure=closure))
    return training.record()


def one_head() -> Iterator[tuple[str, Record]]:
    """All tasks train the outputs of the main one; their answers are compared over the rows of all processes."""
    training = Training(METHODS["Agreement"], unused=True)
    for step in range(STEPS):
        x, targets = shard(step)
        outputs = training.model(x, ("main",))["main"]
        losses = {name: (outputs - target).square().mean() for name, target in targets.items()}
        training.step(training.joint(losses.pop("main"), losses))
    signals = training.reweighter.signals
    yield "Agreement", training.record("none" if signals is None or signals.transfer is None else "answers")


def accumulation() -> Iterator[tuple[str, Record]]:
    """Two micro-batches per step of the optimiser: the first sends no gradients, but its weights agree, too."""
    for name, method in METHODS.items():
        yield name, train_with_accumulation(method)


def train_with_accumulation(method: Method[Any]) -> Record:
    training = Training(method)
    for step in range(0, STEPS, 2):
        training.optimizer.zero_grad()
        unsent = training.model.no_sync() if isinstance(training.model, DistributedDataParallel) else nullcontext()
        with unsent:
            (training.joint(*losses_of(training.model, *shard(step))) / 2).backward()
        (training.joint(*losses_of(training.model, *shard(step + 1))) / 2).backward()
        training.optimizer.step()
    return training.record()


def held_tasks(step: int, rank: int) -> list[str]:
    """Tasks in a rank's part of the batch: some ranks lack some, and at times all ranks lack b, or the main task."""
    nobody = {"main": step == 7, "b": step % 4 == 2, "c": False}
    not_here = {
        "main": step in (4, 5) and rank == 1,
        "b": step % 2 == 1 and rank == 0,
        "c": step % 3 == 0 and rank != 0,
    }
    return [name for name in ("main", *TASKS) if not nobody.get(name) and not not_here.get(name)]


def missing() -> Iterator[tuple[str, Record]]:
    """Tasks that only some shards hold. One process plays several shards in turn, so as to be compared with them.

    The model stays as it is: the sum that DDP divides by the number of processes holds a term for each holder only.
    """
    for shards in (2, 3) if WORLD == 1 else (WORLD,):
        for name, method in METHODS.items():
            yield f"{name}, {shards} shards", train_with_missing_tasks(method, shards, through_closure=False)
        for name in ("ARML", "GatedARML"):
            yield (
                f"{name}, closure, {shards} shards",
                train_with_missing_tasks(METHODS[name], shards, through_closure=True),
            )


def train_with_missing_tasks(method: Method[Any], shards: int, *, through_closure: bool) -> Record:
    training = Training(method, unused=True)
    mine = range(shards) if WORLD == 1 else (RANK,)
    for step in range(STEPS):

        def losses(model: nn.Module, step: int = step) -> Losses:
            found: dict[str, list[Tensor]] = {}
            for rank in mine:
                x, targets = shard(step, rank=rank, world=shards)
                for name, output in model(x, held_tasks(step, rank)).items():
                    found.setdefault(name, []).append((output - targets[name]).square().mean())
            means = {name: torch.stack(parts).mean() for name, parts in found.items()}
            return means.pop("main", None), means

        closure = (lambda losses=losses: losses(training.net)) if through_closure else None
        training.optimizer.zero_grad()
        training.joint(*losses(training.model), closure=closure).backward()
    return training.record()


def turns() -> Iterator[tuple[str, Record]]:
    """One auxiliary task per batch, and the main task in two of three batches."""
    for name, method in METHODS.items():
        training = Training(method, unused=True)
        for step in range(2 * STEPS):
            main, aux = losses_of(training.model, *shard(step))
            task = TASKS[step % len(TASKS)]
            training.step(training.joint(None if step % 3 == 2 else main, {task: aux[task]}))
        yield name, training.record()


BAD_LOSS, BAD_GRADIENT = 3, 6
"""Steps at which the last rank's loss of task b, or its gradient of task c, is NaN."""


def nan() -> Iterator[tuple[str, Record]]:
    """One rank's loss, later one rank's gradient, is NaN."""
    for name, method in METHODS.items():
        yield name, train_with_nan(method, through_closure=False)
    yield "ARML, closure", train_with_nan(METHODS["ARML"], through_closure=True)


def train_with_nan(method: Method[Any], *, through_closure: bool) -> Record:
    training = Training(method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(STEPS):

            def losses(step: int = step) -> Losses:
                main, aux = losses_of(training.model, *shard(step))
                if RANK == WORLD - 1 and step == BAD_LOSS:
                    aux["b"] = aux["b"] * float("nan")
                if RANK == WORLD - 1 and step == BAD_GRADIENT:
                    aux["c"] = aux["c"] + (aux["c"] - aux["c"]).sqrt()  # adds 0, whose slope is inf - inf
                return main, aux

            training.optimizer.zero_grad()
            training.joint(*losses(), closure=losses if through_closure else None).backward()
            if all(p.grad is None or bool(p.grad.isfinite().all()) for p in training.net.parameters()):
                training.optimizer.step()
    return training.record(*(str(warning.message) for warning in caught))


def fallback() -> Iterator[tuple[str, Record]]:
    """What fails on one rank only: all ranks must turn to the same other engine."""
    for name in ("ARML", "GatedARML"):
        yield name, train_with_failing_closure(METHODS[name])


def train_with_failing_closure(method: Method[Any]) -> Record:
    training = Training(method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(STEPS):

            def closure(step: int = step) -> Losses:
                return losses_of(training.model, *shard(step if RANK == 0 else step + 1))

            given = losses_of(training.model, *shard(step))
            training.step(training.joint(*given, closure=closure if WORLD > 1 else None))
    return training.record(*(str(warning.message) for warning in caught))


def precision() -> Iterator[tuple[str, Record]]:
    """A task in another precision than the rest, which only the last rank holds."""
    for name in ("ARML", "GradNorm"):
        training = Training(METHODS[name], unused=True)
        for step in range(STEPS):
            main, aux = losses_of(training.model, *shard(step))
            aux = {task: loss if task == "b" else loss.float() for task, loss in aux.items()}
            if RANK < WORLD - 1:
                del aux["b"]
            training.optimizer.zero_grad()
            training.joint(main.float(), aux).backward()
        yield name, training.record()


def langevin() -> Iterator[tuple[str, Record]]:
    """Noise after every step, until the weights have converged."""
    for name, adam in (("SGD", False), ("Adam", True)):
        yield name, sample(adam=adam)
        yield f"{name}, no noise", sample(adam=adam, temperature=0)


def drift() -> Iterator[tuple[str, Record]]:
    """Noise with another seed on each rank, which the documentation warns against."""
    yield "SGD", sample(adam=False, seed=RANK)


def sample(*, adam: bool, **settings: Any) -> Record:
    training = Training(arml.ARML(lr=0.1), adam=adam, convergence=Convergence(at_most=8))
    noise = Langevin(training.optimizer, num_examples=1000, until=lambda: training.reweighter.converged, **settings)
    noisy = 0
    for step in range(STEPS):
        training.step(training.joint(*losses_of(training.model, *shard(step))))
        noisy += noise.active
    return training.record(f"noise at {noisy} steps")


def resume() -> Iterator[tuple[str, Record]]:
    """Saved by rank 0 between two measurements, continued by all ranks. To be compared with ``methods``."""
    for name, method in METHODS.items():
        yield name, train_in_two_parts(method)


def train_in_two_parts(method: Method[Any]) -> Record:
    training = Training(method, every=2)
    for step in range(STEPS):
        if step == STEPS // 2 - 1:
            state = broadcast_from_rank_0(
                [part.state_dict() for part in (training.net, training.optimizer, training.reweighter)]
            )
            seen, training = training.weights, Training(method, every=2, seed=1)
            for part, saved in zip((training.net, training.optimizer, training.reweighter), state, strict=True):
                part.load_state_dict(saved)
            training.weights = seen
        training.step(training.joint(*losses_of(training.model, *shard(step))))
    return training.record()


def broadcast_from_rank_0(state: list[Any]) -> list[Any]:
    """What rank 0 saved, as this rank loads it."""
    file = io.BytesIO()
    torch.save(state, file)
    saved = [file.getvalue()]
    if WORLD > 1:
        dist.broadcast_object_list(saved)
    loaded: list[Any] = torch.load(io.BytesIO(saved[0]))
    return loaded


SCENARIOS: dict[str, Callable[[], Iterator[tuple[str, Record]]]] = {
    "methods": methods,
    "measures": measures,
    "engines": engines,
    "one_head": one_head,
    "accumulation": accumulation,
    "missing": missing,
    "turns": turns,
    "nan": nan,
    "fallback": fallback,
    "precision": precision,
    "langevin": langevin,
    "drift": drift,
    "resume": resume,
}


def main(output: Path) -> None:
    """Runs the scenarios and writes what all ranks recorded."""
    torch.set_num_threads(1)
    warnings.simplefilter("error", UserWarning)  # an engine that gives up and lets another one answer is not tested
    if WORLD > 1:
        dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    mine = {name: dict(scenario()) for name, scenario in SCENARIOS.items()}
    ranks = [mine] * WORLD
    if WORLD > 1:
        dist.all_gather_object(ranks, mine)
        gc.collect()  # a wrapped model that outlives its process group may abort the process when it ends
        dist.destroy_process_group()
    if RANK == 0:
        together = {s: {run: [rank[s][run] for rank in ranks] for run in mine[s]} for s in mine}
        output.write_text(json.dumps(together))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # everything is written; torch's remaining threads may abort a process that ends by itself
