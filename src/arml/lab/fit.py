"""A run without a network: fits a simple model to the same labels, and records its result like any other."""

from pathlib import Path

from arml.lab.build import multi_label
from arml.lab.build.skeleton import Folders
from arml.lab.catalogue import choose
from arml.lab.data.cache import report_nothing
from arml.lab.journal import Watch
from arml.lab.metrics import metrics
from arml.lab.run import Run
from arml.lab.run_folder import RECORD, mark_done
from arml.lab.run_kinds import MultiLabel
from arml.lab.simple_models import SIMPLE_MODELS, Problem
from arml.lab.trace import Record, Trace


def is_simple(run: Run) -> bool:
    """Whether the run fits a simple model instead of a network."""
    return isinstance(run, MultiLabel) and run.learner in SIMPLE_MODELS


def fit(run: Run, folders: Folders, folder: Path, *, watch: Watch = lambda _: None) -> Record:
    """Fits the model that ``run.learner`` names, and uses the test examples once."""
    if not isinstance(run, MultiLabel):
        raise TypeError(f"Simple models are for runs with several targets. Got {type(run).__name__}.")
    loaded = multi_label.load(run, folders, report_nothing)
    rows, main = loaded.rows, loaded.main
    x = loaded.examples.inputs(rows.aux).double().numpy()
    model = choose(SIMPLE_MODELS, run.learner, "learner")
    answers = model(Problem(x, main, loaded.others, rows, run.seed))
    found = metrics(main, answers, main.values[rows.test])
    outcome: Record = {
        "step": 0,
        **{f"test_{name}": value for name, value in found.items()},
        "test_error_last": found["error"],
        "weights": {},
    }
    folder.mkdir(parents=True, exist_ok=True)
    with Trace(folder / RECORD, run) as trace:
        trace.write(outcome)
        trace.position()  # on disk before the run counts as complete
    watch(outcome)
    mark_done(folder)
    return outcome
