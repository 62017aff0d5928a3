"""The settings of the paper by the word typed for them: what a run is, its presets, its parts, its comparison."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from arml.cli import domains as dg
from arml.cli import multi_label as mlc
from arml.cli import semi_supervised as ssl
from arml.lab.data.cache import ReportCount
from arml.lab.experiments import domain_runs, multi_label_runs, semi_supervised_runs
from arml.lab.run import Domains, MultiLabel, Run, SemiSupervised
from arml.lab.train import Parts

# Each setting has its own kind of run; the table below keeps runs, presets, parts and comparisons of one kind together.
AnyRun: TypeAlias = Any


class Setting(NamedTuple):
    """What the commands need to know of a setting."""

    run: type[Run]
    table: type[Any]
    """Which lines a comparison has."""
    presets: Mapping[str, Callable[[str], Run]]
    datasets: Sequence[str]
    build: Callable[[AnyRun, Path, Path], Parts[Any]]
    prepare: Callable[[AnyRun, Path, Path, ReportCount], None]
    completed: Callable[[AnyRun], AnyRun] = lambda run: run
    """The run with what follows from its options filled in."""
    lines: Callable[[AnyRun], Any] | None = None
    """The comparison that a run's data set has by default; ``None``: the same for all."""
    seeds: int = 3
    """Of a comparison, by default."""
    own_data: str = ""
    """The option that names data of the user's own; they are a data set of the same name."""


SETTINGS: dict[str, Setting] = {
    "ssl": Setting(
        SemiSupervised,
        semi_supervised_runs.Table,
        semi_supervised_runs.PRESETS,
        semi_supervised_runs.DATASETS,
        ssl.build,
        ssl.prepare,
    ),
    "mlc": Setting(
        MultiLabel,
        multi_label_runs.Table,
        multi_label_runs.PRESETS,
        multi_label_runs.DATASETS,
        mlc.build,
        mlc.prepare,
        mlc.completed,
        seeds=5,
        own_data="table",
    ),
    "dg": Setting(
        Domains,
        domain_runs.Table,
        domain_runs.PRESETS,
        domain_runs.DATASETS,
        dg.build,
        dg.prepare,
        dg.completed,
        lines=domain_runs.lines,
        own_data="folders",
    ),
}


def build(run: Run, data_dir: Path, cache: Path) -> Parts[Any]:
    """Everything ``run`` trains with."""
    return SETTINGS[run.setting].build(run, data_dir, cache)
