"""Answers from errors that are given line by line, without files."""

from report.made_records import make_recorded

from arml.lab.run_kinds import Domains
from arml.report.data.answer import make_answer
from arml.report.data.comparison import comparisons
from arml.report.data.topics import topics

TASKS = ("mnist5k", "misleading")


def make_records(*, shots=2, simple=None, **errors):
    """Records of one experiment: ``errors`` by line, seed by seed; ``without_TASK`` leaves that task out,
    ``LEARNER__METHOD`` is another learner than joint training."""
    found = []
    for name, values in errors.items():
        for seed, error in enumerate(values):
            fields, tasks = _fields(name)
            run = Domains(seed=seed, shots=shots, **fields)
            one = make_recorded(error, run=run, weights=dict.fromkeys(tasks, 1.0))
            if simple:
                one.records[-1]["yardsticks"] = {model: at[seed] for model, at in simple.items()}
            found.append(one)
    return found


def _fields(name):
    if name == "alone":
        return {"learner": "main_only", "method": "uniform"}, ()
    if name.startswith("without_"):
        task = name.removeprefix("without_")
        return {"method": "uniform", "leave_out": (task,)}, [one for one in TASKS if one != task]
    learner, _, method = name.rpartition("__")
    return {"learner": learner or "jt", "method": method}, TASKS


def answer_on(**errors):
    """The answer on one experiment."""
    (comparison,) = comparisons(make_records(**errors))
    return make_answer(comparison)


def answer_at(labels, records):
    """The answer at one number of labels, with the same experiment at others."""
    compared = comparisons(records)
    return next(make_answer(one, topics(compared)) for one in compared if one.subject.labels == labels)
