"""``arml bench``: what learning the weights costs."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console

from arml.bench import processes, scaling, step_profile, whole_run
from arml.bench.contenders import ways
from arml.bench.cost_charts import charts
from arml.bench.cost_targets import FEW, MANY, Target, targets
from arml.bench.costs import costs_of
from arml.bench.peers import NO_TORCHJD, has_torchjd
from arml.bench.problems import FLASH, MLP, RESNET, TRANSFORMER, WRN, Kind
from arml.bench.result import OnProcesses, Result, read, write
from arml.bench.tables import sheets
from arml.bench.timing import Plan
from arml.cli.progress import count_bar, plain_warnings, say
from arml.cli.train import check_at_least_one
from arml.lab.environment import environment
from arml.report.output.matplotlib_figures import save
from arml.report.output.terminal import print_sheets
from arml.report.output.text import markdown

KindName = Literal["mlp", "wrn", "resnet", "transformer", "flash"]
KINDS: dict[KindName, Kind] = {
    "mlp": MLP,
    "wrn": WRN,
    "resnet": RESNET,
    "transformer": TRANSFORMER,
    "flash": FLASH,
}
PartName = Literal["schedule", "phases", "scaling", "processes"]
SEVERAL = 10
"""Tasks of the networks that are trained on several processes."""


@dataclass(frozen=True)
class Bench:
    """Cost of learning the weights against the number of tasks, ours and others' ways side by side; targets."""

    kinds: tuple[KindName, ...] | None = None
    """Networks: a multilayer perceptron, WRN-28-2, ResNet18, a small transformer, the same with flash attention. All of
    them unless given, with --quick all but WRN-28-2."""
    num_aux: tuple[int, ...] | None = None
    """Numbers K of auxiliary tasks; 2 10 39 120 200 unless given, 2 39 with --quick."""
    repeats: int | None = None
    """Rounds of measurements, at most; 15 unless given, 2 with --quick."""
    seconds: float = 240.0
    """Time for the rounds of one network; there are fewer where they do not fit, but no fewer than three."""
    threads: int = 1
    """Threads of torch. With one, time of this process alone is measured, which others hardly disturb."""
    device: str = "cpu"
    """Where to measure: cpu or cuda."""
    batch: int | None = None
    """Inputs in a batch; unless given, each network has its own."""
    parts: tuple[PartName, ...] | None = None
    """What to measure besides: a whole run with the default schedule, where the time of a step goes, other batches and
    numbers of parameters, several processes. All of them unless given; with --quick the schedule only."""
    quick: bool = False
    """A look in less than a minute: small batches, few rounds, ARML alone; ways that grow with K if they are fast."""
    out: Path = Path("runs/bench")
    """Where cost.json, tables.md and figures are written."""
    again: Path | None = None
    """Measure nothing: show this cost.json, and make tables and figures of it."""


def run_bench(command: Bench, console: Console) -> int:
    """Measures, shows and writes; 0 if every target that was measured is met, 1 if one is not."""
    _check(command)
    if command.again is not None:
        return _show(read(command.again), command, console)
    _announce(command, console)
    begun = found = _begun(command)
    try:
        for found in _measured(begun, command, console):
            _keep(found, command.out)
    except KeyboardInterrupt:
        _show(found, command, console)
        raise
    return _show(found, command, console)


def _check(command: Bench) -> None:
    for name in ("threads", "repeats", "batch"):
        value = getattr(command, name)
        check_at_least_one(f"--{name}", 1 if value is None else value)
    for k in _num_aux(command):
        check_at_least_one("--num-aux", k)


def _num_aux(command: Bench) -> tuple[int, ...]:
    usual = (FEW, MANY) if command.quick else (2, 10, 39, 120, 200)
    return command.num_aux or usual


def _kinds(command: Bench) -> list[Kind]:
    usual = [name for name in KINDS if not (command.quick and name == "wrn")]
    return [KINDS[name] for name in (usual if command.kinds is None else command.kinds)]


def _plan(command: Bench) -> Plan:
    repeats = command.repeats or (2 if command.quick else 15)
    return Plan(repeats, command.seconds, command.threads, command.device, brief=command.quick)


def _parts(command: Bench) -> tuple[PartName, ...]:
    usual: tuple[PartName, ...] = ("schedule",) if command.quick else ("schedule", "phases", "scaling", "processes")
    return usual if command.parts is None else command.parts


def _batch(command: Bench, kind: Kind) -> int:
    return command.batch or (kind.quick_batch if command.quick else kind.batch)


def _begun(command: Bench) -> Result:
    plan = _plan(command)
    settings: dict[str, Any] = {**asdict(plan), "num_aux": _num_aux(command), "clock": plan.clock()}
    versions = {"torchjd": version("torchjd")} if has_torchjd() else {}
    return Result(settings, {**environment(), **versions})


def _announce(command: Bench, console: Console) -> None:
    plan, tasks = _plan(command), ", ".join(map(str, _num_aux(command)))
    names = [kind.name for kind in _kinds(command)]
    say(console, f"Time and memory of training steps with K = {tasks} auxiliary tasks, in turns, by {plan.clock()}:")
    say(console, *(f"  {name}" for name in [*names, *_parts(command)]))
    if replace(command, quick=False, out=Bench.out) == Bench():
        say(console, "Less than a minute." if command.quick else "About 25 minutes on one core; --quick takes one.")
    if not has_torchjd():
        say(console, NO_TORCHJD)


def _measured(result: Result, command: Bench, console: Console) -> Iterator[Result]:
    """The result after each kind and each part."""
    torch.set_num_threads(command.threads)
    for kind in _kinds(command):
        yield (result := _with_kind(result, kind, command, console))
    for part in _parts(command):
        yield (result := PARTS[part](result, command, console))


def _with_kind(result: Result, kind: Kind, command: Bench, console: Console) -> Result:
    compared = [way for way in ways() if way.in_brief or not command.quick]
    with plain_warnings(console), count_bar(kind.name, console) as count:
        found = costs_of(kind, compared, _num_aux(command), _plan(command), batch=_batch(command, kind), count=count)
    return replace(
        result,
        kinds=(*result.kinds, found.facts),
        timings=(*result.timings, *found.rows),
        refusals=(*result.refusals, *found.refusals),
    )


def _with_schedule(result: Result, command: Bench, console: Console) -> Result:
    plan, batch = _plan(command), _batch(command, RESNET)
    with count_bar("whole run", console) as count:
        runs = whole_run.whole_runs(RESNET, MANY, batch, plan, 1 if command.quick else 8, count)
        settled = whole_run.after_convergence(RESNET, MANY, batch, plan, plan.repeats)
    return replace(result, schedule=tuple(runs), settled=(settled,))


def _with_phases(result: Result, command: Bench, console: Console) -> Result:
    plan, batch = _plan(command), _batch(command, RESNET)
    say(console, "where the time goes")
    parts = step_profile.phases_of(RESNET, MANY, batch, plan, plan.repeats)
    return replace(result, phases=tuple(parts), operations=tuple(step_profile.operations_of(RESNET, MANY, batch, plan)))


def _with_scaling(result: Result, command: Bench, console: Console) -> Result:
    plan = replace(_plan(command), seconds=command.seconds / 10)
    with count_bar("batches", console) as count:
        batches = scaling.over_batches(RESNET, MANY, plan, count)
    with count_bar("parameters", console) as count:
        parameters = scaling.over_parameters(MANY, plan, count)
    return replace(result, scaling=(*batches, *parameters))


def _with_processes(result: Result, command: Bench, console: Console) -> Result:
    """Every process has a network of its own, and backward passes for each task take long: few tasks, few rounds."""
    say(console, "one and two processes")
    batch = _batch(command, RESNET) // 2
    rounds = [(n, processes.measured(RESNET, SEVERAL, batch, n, min(6, _plan(command).repeats))) for n in (1, 2)]
    rows = [_on_processes(row) for _, measured in rounds for row in measured]
    return replace(result, processes=tuple(rows))


def _on_processes(row: processes.Row) -> OnProcesses:
    median, low, high = (1000 * seconds for seconds in row.seconds[:3])
    sent = (*row.gradients, *row.update)
    return OnProcesses(
        RESNET.name, SEVERAL, row.way, row.processes, *sent, median, low, high, row.seconds.n, row.refused, row.ratio
    )


PARTS = {
    "schedule": _with_schedule,
    "phases": _with_phases,
    "scaling": _with_scaling,
    "processes": _with_processes,
}


def _keep(result: Result, folder: Path) -> None:
    judged = [{**asdict(target), "met": target.met} for target in targets(result)]
    write(result, folder, {"targets": judged})


def _show(result: Result, command: Bench, console: Console) -> int:
    """Tables on the terminal and as files, figures; and the verdict on the targets."""
    judged = targets(result)
    made = sheets(result, judged)
    print_sheets([sheet for sheet in made if sheet.brief], console)
    command.out.mkdir(parents=True, exist_ok=True)
    _keep(result, command.out)
    (command.out / "tables.md").write_text(markdown(made), encoding="utf-8")
    paths = save(charts(result), command.out) if result.timings else []
    say(console, *_verdict(judged, quick=bool(result.settings["brief"])))
    say(
        console,
        f"files in {command.out}: cost.json, tables.md, {', '.join(path.name for path in paths) or 'no figures'}",
    )
    return 1 if any(target.met is False for target in judged) else 0


def _verdict(judged: list[Target], *, quick: bool) -> Iterator[str]:
    known = [target for target in judged if target.met is not None]
    yield f"{sum(target.met is True for target in known)} of {len(known)} targets that could be judged are met."
    if quick:
        yield "This was a quick look with few rounds and small batches: what it says of targets is not final."
