"""The three settings of the paper by name: what a run is, its presets, its comparison, and how it is made."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch

from arml.lab.build import domains, multi_label, semi_supervised, suite
from arml.lab.build.skeleton import Contribution, Folders, assemble
from arml.lab.data.cache import ReportCount, report_nothing
from arml.lab.experiments import domain_runs, multi_label_runs, semi_supervised_runs
from arml.lab.hardware import CPU
from arml.lab.processes import first_process_first
from arml.lab.run import Run
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
from arml.lab.train import Parts

# Each setting has its own kinds of run, data and batch; the table below keeps those of one setting together.
AnyRun: TypeAlias = Any
AnyData: TypeAlias = Any


class Setting(NamedTuple):
    """What there is to know about a setting."""

    run: type[Run]
    table: type[Any]
    """Which lines a comparison has."""
    presets: Mapping[str, Callable[[str], Run]]
    datasets: Sequence[str]
    load: Callable[[AnyRun, Folders, ReportCount], AnyData]
    """Reads the data of a run, and refuses a run that does not fit them."""
    contribute: Callable[[AnyRun, AnyData], Contribution[Any]]
    complete: Callable[[AnyRun], AnyRun] = lambda run: run
    """Fills in what follows from the options of a run."""
    default_table: Callable[[AnyRun], Any] | None = None
    """The comparison that suits a run's data set; ``None``: the same for all."""
    seeds: int = 3
    """Number of seeds in a comparison by default."""
    own_data: str = ""
    """The option that names the user's own data; their data set has the same name."""

    def table_for(self, run: AnyRun) -> Any:
        """The comparison that suits ``run``."""
        return self.table() if self.default_table is None else self.default_table(run)


SETTINGS: dict[str, Setting] = {
    "ssl": Setting(
        SemiSupervised,
        semi_supervised_runs.Table,
        semi_supervised_runs.PRESETS,
        semi_supervised_runs.DATASETS,
        semi_supervised.load,
        semi_supervised.contribute,
        semi_supervised.complete,
    ),
    "mlc": Setting(
        MultiLabel,
        multi_label_runs.Table,
        multi_label_runs.PRESETS,
        multi_label_runs.DATASETS,
        multi_label.load,
        multi_label.contribute,
        multi_label.complete,
        seeds=5,
        own_data="table",
    ),
    "dg": Setting(
        Domains,
        domain_runs.Table,
        domain_runs.PRESETS,
        domain_runs.DATASETS,
        domains.load,
        domains.contribute,
        domains.complete,
        default_table=domain_runs.default_table,
        own_data="folders",
    ),
}


class Maker(NamedTuple):
    """How a run of one kind is completed and made; the fields are those of a setting."""

    load: Callable[[AnyRun, Folders, ReportCount], AnyData]
    contribute: Callable[[AnyRun, AnyData], Contribution[Any]]
    complete: Callable[[AnyRun], AnyRun]


MAKERS: dict[str, Maker] = {
    **{name: Maker(setting.load, setting.contribute, setting.complete) for name, setting in SETTINGS.items()},
    "suite": Maker(suite.load, suite.contribute, suite.complete),
}
"""For every kind of run: those of the paper's settings, and those in worlds of the suite."""


def complete(run: Run) -> Run:
    """The run with what follows from its options filled in, such as fingerprints of the files it reads."""
    completed: Run = MAKERS[run.setting].complete(run)
    return completed


def build(run: Run, folders: Folders, count: ReportCount = report_nothing, *, device: torch.device = CPU) -> Parts[Any]:
    """Everything ``run`` trains with.

    Args:
        run: what to train.
        folders: where data sets are, and where decoded images are kept.
        count: is told how many of how many images have been decoded.
        device: where to train.
    """
    maker = MAKERS[run.setting]
    with first_process_first():
        loaded = maker.load(run, folders, count)
    return assemble(run, maker.contribute(run, loaded), device)


def check_data(runs: Sequence[Run], folders: Folders, count: ReportCount = report_nothing) -> None:
    """Reads the data of every subject once: faults show, and images are decoded, before many runs begin."""
    for run in {run.subject(): run for run in runs}.values():
        MAKERS[run.setting].load(run, folders, count)
