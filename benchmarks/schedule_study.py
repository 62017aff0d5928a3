"""How rarely can the weights be updated? ARML on the embedded settings, with an update every 1, 5, 10, 20 and 50 steps.

Each seed is compared with itself at every = 1: how far its weights are from those updated at every step, over the whole
run, and how that changes the test error. The step of the weights has two forms: as it is, and times the square root of
``every``, which keeps the noise of an update at every step. The last line of each table is the Reweighter's default:
frequent updates at first, rare ones later.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from arml.lab.environment import environment
from arml.lab.experiments import domain_runs, multi_label_runs, semi_supervised_runs
from arml.lab.run import Run
from arml.lab.sweep import run_all
from arml.lab.trace import read, result
from arml.methods import ARML
from arml.report.data.summary import Summary, paired_difference, summarise
from arml.schedule import Growing

BASES: dict[str, Run] = {
    "digits, 2 tasks on unlabelled images": semi_supervised_runs.cpu("digits"),
    "yeast, 13 targets": multi_label_runs.cpu("yeast"),
    "digits, 4 domains": domain_runs.cpu("digits"),
}
EVERY = (1, 5, 10, 20, 50)


@dataclass(frozen=True)
class Schedule:
    """When the weights are updated, and by how much."""

    every: int
    longer: bool = False
    """Whether the step is multiplied by the square root of ``every``."""
    growing: bool = False
    """Whether updates are more frequent at first."""

    def title(self) -> str:
        """The schedule's name in tables."""
        if self.growing:
            return f"growing to {self.every}"
        return f"{self.every}" + (f", step x {math.sqrt(self.every):.1f}" if self.longer else "")

    def run(self, base: Run, seed: int) -> Run:
        """``base`` with this schedule and ``seed``."""
        step = ARML().lr * (math.sqrt(self.every) if self.longer else 1)
        return replace(base, method="arml", seed=seed, every=self.every, weight_lr=step, growing=self.growing)


class Outcome(NamedTuple):
    """The outcome of one run."""

    error: float
    """Error on the test examples in %."""
    path: list[list[float]]
    """The weights at every recorded step."""


class ScheduleEffect(NamedTuple):
    """One setting with one schedule, over seeds."""

    setting: str
    schedule: Schedule
    distance: Summary
    """Mean over tasks and recorded steps of |w - w at every = 1|; 1 is an equal share."""
    error: Summary
    difference: Summary | None
    """Error minus that at every = 1, on the same seeds."""


def schedules(every: Sequence[int]) -> list[Schedule]:
    """Both forms of each, which are the same at 1, and the Reweighter's default."""
    constant = [Schedule(e, longer) for longer in (False, True) for e in every if e > 1 or not longer]
    return [*constant, Schedule(Growing().most, growing=True)]


def main(words: Sequence[str] | None = None) -> int:
    """Train the runs that are missing, print one table per setting, and write JSON."""
    options, console = _options(words), Console()
    plan = {
        (name, schedule, seed): schedule.run(replace(base, **({"steps": options.steps} if options.steps else {})), seed)
        for seed in range(options.seeds)
        for name, base in BASES.items()
        if base.setting in options.settings
        for schedule in schedules(options.every)
    }
    if not _train_all(list(plan.values()), options, console):
        return 1
    found = {case: _outcome(options.out / run.name()) for case, run in plan.items()}
    effects = list(_effects(found, options))
    for name in dict.fromkeys(one.setting for one in effects):
        mine = [one for one in effects if one.setting == name]
        console.print(_table(name, mine, _yardsticks(found, name, options.seeds), options.seeds))
    path = options.out / "schedule.json"
    path.write_text(json.dumps({"lines": [_as_json(one) for one in effects], "environment": environment()}, indent=1))
    console.print(f"All numbers: {path}", highlight=False, soft_wrap=True)
    return 0


def _train_all(runs: Sequence[Run], options: argparse.Namespace, console: Console) -> bool:
    """Whether all runs ended well; the folder of a failed run holds the reason."""
    with Progress(console=console) as bars:
        bar = bars.add_task("runs", total=len(runs))
        outcomes = run_all(runs, options.out, workers=options.workers, watch=lambda _: bars.advance(bar))
    failed = [outcome.folder for outcome in outcomes if outcome.failure is not None]
    for folder in failed:
        console.print(f"failed: {folder / 'failure.txt'} says why", highlight=False, soft_wrap=True)
    return not failed


def _outcome(folder: Path) -> Outcome:
    records = read(folder / "record.jsonl").records
    last = result(records) or {}
    path = [list(record["weights"].values()) for record in records if "losses" in record]
    return Outcome(last["test_error"], path)


def _effects(found: dict[tuple[str, Schedule, int], Outcome], options: argparse.Namespace) -> Iterator[ScheduleEffect]:
    for name in dict.fromkeys(name for name, _, _ in found):
        often = [found[name, Schedule(1), seed] for seed in range(options.seeds)]
        for schedule in schedules(options.every):
            mine = [found[name, schedule, seed] for seed in range(options.seeds)]
            yield ScheduleEffect(
                name,
                schedule,
                summarise([distance(a.path, b.path) for a, b in zip(mine, often, strict=True)]),
                summarise([one.error for one in mine]),
                paired_difference(*({i: one.error for i, one in enumerate(all_)} for all_ in (mine, often)))
                if schedule.every > 1
                else None,
            )


def distance(path: list[list[float]], other: list[list[float]]) -> float:
    """Mean over steps and tasks of |w - v|."""
    return mean(abs(w - v) for ws, vs in zip(path, other, strict=True) for w, v in zip(ws, vs, strict=True))


def _yardsticks(found: dict[tuple[str, Schedule, int], Outcome], name: str, seeds: int) -> tuple[Summary, float]:
    """Yardsticks for distances: how far weights updated at every step are from equal ones, and from another seed's."""
    paths = [found[name, Schedule(1), seed].path for seed in range(seeds)]
    others = [distance(a, b) for i, a in enumerate(paths) for b in paths[:i]]
    return summarise([distance(path, [[1.0] * len(ws) for ws in path]) for path in paths]), mean(others)


def _table(name: str, effects: Sequence[ScheduleEffect], yardsticks: tuple[Summary, float], seeds: int) -> Table:
    from_equal, from_other_seed = yardsticks
    title = (
        f"{name}, n = {seeds} seeds\nat every = 1 weights are {from_equal.format(3)} away from equal ones, "
        f"and {from_other_seed:.3f} from another seed's"
    )
    made = Table("every", "distance of weights", "test error in %", "difference to every = 1", title=title)
    for one in effects:
        difference = "" if one.difference is None else str(one.difference)
        star = "*" if one.difference is not None and one.difference.excludes_zero() else ""
        made.add_row(one.schedule.title(), one.distance.format(3), str(one.error), difference + star)
    return made


def _as_json(effect: ScheduleEffect) -> dict[str, Any]:
    summaries = {"distance": effect.distance, "error": effect.error, "difference": effect.difference}
    described = {name: None if one is None else one._asdict() for name, one in summaries.items()}
    return {"setting": effect.setting, **asdict(effect.schedule), **described}


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--every", type=int, nargs="+", default=EVERY)
    settings = [base.setting for base in BASES.values()]
    parser.add_argument("--settings", nargs="+", choices=settings, default=settings)
    parser.add_argument("--steps", type=int, help="steps of each run (default: the preset's)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/schedule"))
    options = parser.parse_args(words)
    if options.seeds < 2 or 1 not in options.every:
        parser.error("--seeds should be at least 2, and --every should hold 1, with which all others are compared.")
    return options


if __name__ == "__main__":
    sys.exit(main())
