"""The speed of a whole step of ``arml train``, against the passes of the bare network in it."""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn
from torch.utils.flop_counter import FlopCounterMode

from arml.bench.made_data import make_parts, paper_run
from arml.bench.result import LabStep
from arml.bench.timing import Plan, Tick, peak_bytes
from arml.lab.data.draws import draw_part
from arml.lab.processes import present_processes
from arml.lab.run import Run
from arml.lab.train import Parts, autocast_of, descend, losses_of

CASES = (
    *(("ssl", learner) for learner in ("supervised", "pi_model", "mean_teacher", "vat", "pseudo_label", "s4l")),
    *(("mlc", learner) for learner in ("main_only", "joint")),
    *(("dg", learner) for learner in ("main_only", "jt", "jigen")),
)
"""Settings and learners of the paper's tables."""
DATA, LOSSES, FORWARD, BACKWARD, OPTIMISER = "data", "losses", "forward", "backward", "optimiser"
QUICK_CASES = (("ssl", "supervised"), ("ssl", "s4l"))


def lab_steps(cases: Sequence[tuple[str, str]], batch: int | None, plan: Plan, tick: Tick) -> list[LabStep]:
    """One row per case; ``batch``: examples of each kind per step, the paper's own if ``None``."""
    found = []
    for number, (setting, learner) in enumerate(cases):
        found.append(measure_step(paper_run(setting, learner, batch), plan))
        tick(1 + number, len(cases))
    return found


def measure_step(run: Run, plan: Plan) -> LabStep:
    """Medians over ``plan.repeats`` steps after one that warms up, then one step that counts its memory."""
    parts = make_parts(run, torch.device(plan.device))
    parts.network.train()
    taken = [_timed_step(parts, step, plan.read_clock) for step in range(1 + plan.repeats)][1:]
    parts_of_step = {name: median(one[name] for one in taken) for name in taken[0]}
    peak = peak_bytes(lambda: _step(parts, 2), plan.device)
    seconds = sum(parts_of_step.values())
    bare = parts_of_step[FORWARD] + parts_of_step[BACKWARD]
    images = sum(sampler.batch_size for sampler in parts.batches.samplers.values())
    shares = {name: parts_of_step[name] / seconds for name in (DATA, LOSSES, OPTIMISER)}
    return LabStep(
        run.setting, run.line().learner, run.network, images, plan.threads, 1, plan.repeats, 1000 * seconds,
        seconds / bare, shares[DATA], shares[LOSSES], shares[OPTIMISER], step_gflops(run), peak,
    )  # fmt: skip


def step_gflops(run: Run) -> float:
    """Floating point operations of a step with equal weights, in 10^9, counted on torch's device ``meta``.

    It computes nothing, so that the paper's batches take no time. Learners that do not work there count on the CPU.
    """
    fixed = replace(run, method="uniform")
    try:
        return _count_gflops(make_parts(fixed, torch.device("meta")))
    except RuntimeError:
        return _count_gflops(make_parts(fixed))


def _count_gflops(parts: Parts[Any]) -> float:
    parts.network.train()
    with FlopCounterMode(display=False) as flops:
        _step(parts, 0)
    return float(flops.get_total_flops()) / 1e9


def _step(parts: Parts[Any], step: int) -> None:
    descend(parts, losses_of(parts, step))


def _timed_step(parts: Parts[Any], step: int, read: Callable[[], float]) -> dict[str, float]:
    """The seconds of the parts of one step: passes of the trunk are forward, all else in the losses is not."""
    with _watch_trunk(parts, read) as forward:
        begin = read()
        batch = parts.batches.next()
        got = read()
        with autocast_of(parts):
            losses = parts.losses(batch, step, parts.generator)
        computed = read()
    main, aux = losses
    parts.optimizer.zero_grad()
    joint = main if parts.reweighter is None else parts.reweighter(main, aux)
    joint.backward()
    back = read()
    parts.optimizer.step()
    parts.learner.after_step(parts.network)
    end = read()
    return {
        DATA: got - begin,
        LOSSES: computed - got - sum(forward),
        FORWARD: sum(forward),
        BACKWARD: back - computed,
        OPTIMISER: end - back,
    }


@contextmanager
def _watch_trunk(parts: Parts[Any], read: Callable[[], float]) -> Iterator[list[float]]:
    """Lists the seconds of every pass through the trunk, or through that of a teacher."""
    seconds: list[float] = []
    trunks = [parts.network.trunk]
    teacher = getattr(parts.learner, "_teacher", None)
    trunks += [] if teacher is None else [teacher.network.trunk]
    starts: list[float] = []

    def stop(*_: Any) -> None:
        seconds.append(read() - starts.pop())

    hooks = [trunk.register_forward_pre_hook(lambda *_: starts.append(read())) for trunk in trunks]
    hooks += [trunk.register_forward_hook(stop) for trunk in trunks]
    try:
        yield seconds
    finally:
        for hook in hooks:
            hook.remove()


class StepSeconds(NamedTuple):
    """What a step takes."""

    wall: float
    processor: float
    """Of the busiest process."""


def process_seconds(run: Run, processes: int, steps: int) -> StepSeconds:
    """The median step of ``steps`` on ``processes`` with one thread each."""
    with TemporaryDirectory() as folder:
        spawn(_process, (run, processes, steps, Path(folder)), processes)
        taken = [json.loads(file.read_text()) for file in Path(folder).glob("rank*.json")]
    return StepSeconds(*(max(one) for one in zip(*taken, strict=True)))


def _process(rank: int, run: Run, processes: int, steps: int, folder: Path) -> None:
    torch.set_num_threads(1)
    if processes > 1:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=processes)
    parts, taken = make_parts(run), []
    parts.network.train()
    with draw_part(present_processes()):
        for step in range(1 + steps):
            start = time.perf_counter(), time.process_time()
            _step(parts, step)
            taken.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    wall, processor = (median(one) for one in zip(*taken[1:], strict=True))
    (folder / f"rank{rank}.json").write_text(json.dumps([wall, processor]))
    if processes > 1:
        del parts
        dist.destroy_process_group()
