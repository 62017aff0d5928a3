"""A session: what to measure, and the result after every part of it."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from typing import Any, TypeAlias

import torch

from arml.bench import lab_steps, processes, recommended_run, scaling, step_profile, whole_run
from arml.bench.contenders import contenders
from arml.bench.cost_targets import FEW, MANY
from arml.bench.costs import kind_costs
from arml.bench.made_data import paper_run
from arml.bench.peers import has_torchjd
from arml.bench.problems import FLASH, MLP, RESNET, TRANSFORMER, WRN, Kind
from arml.bench.request import KindName, PartName, Request
from arml.bench.result import Result
from arml.bench.timing import Plan, Tick
from arml.lab.environment import environment

KINDS: dict[KindName, Kind] = {
    "mlp": MLP,
    "wrn": WRN,
    "resnet": RESNET,
    "transformer": TRANSFORMER,
    "flash": FLASH,
}
TASKS_ON_PROCESSES = 10
"""K on several processes: each process has its own network, and one backward pass per task takes long."""
ROUNDS_ON_PROCESSES = 6
"""The largest number of rounds on several processes."""

ROUNDS_IN_LAB = 5
"""The largest number of steps of each learner: those of the paper take long on a CPU."""

WatchStage: TypeAlias = Callable[[str], AbstractContextManager[Tick]]
"""Entered with a title around everything that takes time; yields what to call after every turn."""


@dataclass(frozen=True)
class Session(Request):
    """What to measure, with everything filled in that was not asked for."""

    def chosen_kinds(self) -> list[Kind]:
        """The networks to measure on."""
        usual = [name for name in KINDS if not (self.quick and name == "wrn") and self.parts != ("lab",)]
        return [KINDS[name] for name in (usual if self.kinds is None else self.kinds)]

    def chosen_num_aux(self) -> tuple[int, ...]:
        """Every K to measure at."""
        usual = (FEW, MANY) if self.quick else (2, 10, 39, 120, 200)
        return self.num_aux or usual

    def chosen_parts(self) -> tuple[PartName, ...]:
        """The parts to measure after the networks."""
        always: tuple[PartName, ...] = ("schedule", "recommended")
        usual = always if self.quick else (*always, "phases", "scaling", "processes")
        return usual if self.parts is None else self.parts

    def plan(self) -> Plan:
        """How long to measure, and where."""
        repeats = self.repeats or (2 if self.quick else 15)
        return Plan(repeats, self.seconds, self.threads, self.device, brief=self.quick)

    def batch_of(self, kind: Kind) -> int:
        """Inputs per batch of ``kind``."""
        return self.batch or (kind.quick_batch if self.quick else kind.batch)


def begin(session: Session) -> Result:
    """A result with settings and environment, before anything is measured."""
    plan = session.plan()
    settings: dict[str, Any] = {**asdict(plan), "num_aux": session.chosen_num_aux(), "clock": plan.clock_name()}
    versions = {"torchjd": version("torchjd")} if has_torchjd() else {}
    return Result(settings, {**environment(), **versions})


def measure(result: Result, session: Session, watch: WatchStage) -> Iterator[Result]:
    """Yield the result after each kind of network and each part, so that a session can be stopped at any time."""
    torch.set_num_threads(session.threads)
    for kind in session.chosen_kinds():
        yield (result := _add_kind(result, kind, session, watch))
    for part in session.chosen_parts():
        yield (result := PARTS[part](result, session, watch))


def _add_kind(result: Result, kind: Kind, session: Session, watch: WatchStage) -> Result:
    compared = [one for one in contenders() if one.in_brief or not session.quick]
    num_aux, plan, batch = session.chosen_num_aux(), session.plan(), session.batch_of(kind)
    with watch(kind.name) as tick:
        found = kind_costs(kind, compared, num_aux, plan, batch=batch, tick=tick)
    return replace(
        result,
        kinds=(*result.kinds, found.facts),
        timings=(*result.timings, *found.timings),
        refusals=(*result.refusals, *found.refusals),
    )


def _add_schedule(result: Result, session: Session, watch: WatchStage) -> Result:
    plan, batch = session.plan(), session.batch_of(RESNET)
    with watch("whole run") as tick:
        runs = whole_run.whole_runs(RESNET, MANY, batch, plan, 1 if session.quick else 8, tick)
        settled = whole_run.settled_cost(RESNET, MANY, batch, plan, plan.repeats)
    return replace(result, schedule=tuple(runs), settled=(settled,))


def _add_recommended(result: Result, session: Session, watch: WatchStage) -> Result:
    plan, batch = session.plan(), session.batch_of(RESNET)
    with watch("recommended method") as tick:
        found = recommended_run.recommended_steps(RESNET, MANY, batch, plan, tick)
    return replace(result, recommended=tuple(found))


def _add_phases(result: Result, session: Session, watch: WatchStage) -> Result:
    plan, batch = session.plan(), session.batch_of(RESNET)
    with watch("where the time goes") as tick:
        tick(0, 2)
        phases = step_profile.step_phases(RESNET, MANY, batch, plan, plan.repeats)
        tick(1, 2)
        operations = step_profile.step_operations(RESNET, MANY, batch, plan)
        tick(2, 2)
    return replace(result, phases=tuple(phases), operations=tuple(operations))


def _add_scaling(result: Result, session: Session, watch: WatchStage) -> Result:
    plan = replace(session.plan(), seconds=session.seconds / 10)
    with watch("batches") as tick:
        batches = scaling.costs_over_batches(RESNET, MANY, plan, tick)
    with watch("parameters") as tick:
        parameters = scaling.costs_over_parameters(MANY, plan, tick)
    return replace(result, scaling=(*batches, *parameters))


def _add_processes(result: Result, session: Session, watch: WatchStage) -> Result:
    batch, rounds = session.batch_of(RESNET) // 2, min(ROUNDS_ON_PROCESSES, session.plan().repeats)
    with watch("one and two processes") as tick:
        tick(0, 2)
        alone = processes.process_costs(RESNET, TASKS_ON_PROCESSES, batch, 1, rounds)
        tick(1, 2)
        together = processes.process_costs(RESNET, TASKS_ON_PROCESSES, batch, 2, rounds)
        tick(2, 2)
    return replace(result, processes=(*alone, *together))


def _add_lab(result: Result, session: Session, watch: WatchStage) -> Result:
    plan = replace(session.plan(), repeats=min(ROUNDS_IN_LAB, session.plan().repeats))
    cases = lab_steps.QUICK_CASES if session.quick else lab_steps.CASES
    with watch("steps of arml train") as tick:
        found = lab_steps.lab_steps(cases, session.batch, plan, tick)
    if session.device != "cpu" or session.threads > 1:
        return replace(result, lab=tuple(found))
    wrn = paper_run("ssl", "supervised", session.batch)
    with watch("one and two processes") as tick:
        tick(0, 2)
        taken = [lab_steps.process_seconds(wrn, number, plan.repeats) for number in (1, 2)]
        tick(2, 2)
    wall, processor = zip(*taken, strict=True)
    return replace(result, lab=tuple(found), lab_processes=wall, lab_processor=processor)


PARTS: dict[PartName, Callable[[Result, Session, WatchStage], Result]] = {
    "schedule": _add_schedule,
    "recommended": _add_recommended,
    "phases": _add_phases,
    "scaling": _add_scaling,
    "processes": _add_processes,
    "lab": _add_lab,
}
