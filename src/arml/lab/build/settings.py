"""How a run of every kind is completed and made."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import torch

from arml.lab.build import domains, multi_label, semi_supervised, suite
from arml.lab.build.skeleton import Contribution, Folders, assemble
from arml.lab.data.cache import ReportCount, report_nothing
from arml.lab.hardware import CPU
from arml.lab.processes import first_process_first
from arml.lab.run import Run
from arml.lab.train import Parts

# Each kind of run has its own data and batch; the table below keeps those of one kind together.
AnyRun: TypeAlias = Any
AnyData: TypeAlias = Any


class Maker(NamedTuple):
    """How a run of one kind is completed and made."""

    load: Callable[[AnyRun, Folders, ReportCount], AnyData]
    """Reads the data of a run, and refuses a run that does not fit them."""
    contribute: Callable[[AnyRun, AnyData], Contribution[Any]]
    complete: Callable[[AnyRun], AnyRun]
    """Fills in what follows from the options of a run."""


MAKERS: dict[str, Maker] = {
    "ssl": Maker(semi_supervised.load, semi_supervised.contribute, semi_supervised.complete),
    "mlc": Maker(multi_label.load, multi_label.contribute, multi_label.complete),
    "dg": Maker(domains.load, domains.contribute, domains.complete),
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
