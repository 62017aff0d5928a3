"""Titles of lines, subjects and metrics in tables and figures."""

import math

from arml.lab.catalogue import GRID_SEARCH, LEARNERS, METHODS
from arml.lab.run import Line, Subject

METRICS = {
    "error": "error",
    "average_precision": "average precision",
    "auc": "AUC",
    "majority_error": "majority error",
    "rmse": "RMSE",
}
YARDSTICKS = {
    "logistic_regression": "logistic regression on the same labels",
    "most_frequent_class": "always the most frequent class",
    "ridge_regression": "ridge regression on the same labels",
    "mean": "always the mean",
    "linear": "logistic or ridge regression",
    "forest": "a random forest",
    "stacking": "regression on predicted auxiliaries",
}
"""Simple models: their errors stand below a table, or in lines of their own."""
SIMPLE = {name for learners in LEARNERS.values() for name, facts in learners.items() if facts.simple}
"""Learners without a network."""
KNOWN_AT_PREDICTION = "aux_inputs"
"""The one among them whose inputs include the auxiliary columns, so that it answers another question."""
CONSTANTS = ("most_frequent_class", "mean")
"""Yardsticks that give every example the same answer."""
ARMLS = tuple(
    sorted(
        (name for name, facts in METHODS.items() if facts.rank_in_verdict is not None),
        key=lambda name: METHODS[name].rank_in_verdict or 0,
    )
)
"""Methods whose weights the report judges, the recommended one first."""
RELATEDNESS = ("agreement", "arml")
"""Methods whose weights are read as relatedness: the recommended one, and the one of the paper."""
FIXED = (GRID_SEARCH, *(name for name, facts in METHODS.items() if not facts.learned))
"""Methods whose weights stay as they are."""
MAIN_ONLY = {name for learners in LEARNERS.values() for name, facts in learners.items() if facts.main_only}
"""Learners that see the main task alone."""
_LEARNERS = {name: facts for learners in LEARNERS.values() for name, facts in learners.items()}
_SUFFIXES = {
    "": "",  # learners without auxiliary tasks
    **{name: facts.suffix for name, facts in METHODS.items() if name not in ARMLS},
    GRID_SEARCH: " + grid search (best on validation)",
    **{name: facts.suffix for name, facts in METHODS.items() if name in ARMLS},
}
"""What a method adds to the title of a line, in the order of tables: the methods that are judged come last."""
USUAL = ("s4l", "joint", "jt")
"""The learners of the three settings that need no name of their own in a sentence."""
_BLIND = {"", GRID_SEARCH, *(name for name, facts in METHODS.items() if not facts.steered)}


def line_title(line: Line) -> str:
    """The line's title in a table.

    >>> line_title(Line("joint", "arml", "without Male"))
    'All targets + ARML, without Male'
    """
    learner = _LEARNERS[line.learner].title if line.learner in _LEARNERS else line.learner
    name = learner + _SUFFIXES.get(line.method, f" + {line.method}")
    return name + (f", {line.variant}" if line.variant else "")


def short_title(line: Line) -> str:
    """The line in a sentence: the method, and the learner unless it is the usual one.

    >>> short_title(Line("jt", "gated_arml")), short_title(Line("joint", "uniform")), short_title(Line("fada", "arml"))
    ('Gated ARML', 'uniform weights', 'FADA + ARML')
    """
    if line.learner in MAIN_ONLY:
        return "the main task alone"
    learner = "" if line.learner in USUAL and line.method else _LEARNERS[line.learner].title
    method = _SUFFIXES.get(line.method, f" + {line.method}").split(" (")[0]
    return (learner + method).removeprefix(",").removeprefix(" + ").strip()


def suite_title(line: Line) -> str:
    """The title of a line of the suite: the method alone, since all of them have the same tasks.

    >>> suite_title(Line("joint", "gated_arml")), suite_title(Line("joint", "uniform")), suite_title(Line("oracle"))
    ('Gated ARML (ours)', 'Uniform weights', 'Oracle')
    """
    if line.learner in ("oracle", *MAIN_ONLY):
        return "Oracle" if line.learner == "oracle" else "Main task only"
    words = _SUFFIXES.get(line.method, line.method).removeprefix(",").removeprefix(" + ").strip()
    return words[:1].upper() + words[1:] if line.method in FIXED else words


def uses_labels(line: Line) -> bool:
    """Whether labels of the main task train the network or steer the weights.

    >>> uses_labels(Line("baseline", "arml")), uses_labels(Line("baseline", "uniform"))
    (True, False)
    """
    trained_on = line.learner not in _LEARNERS or _LEARNERS[line.learner].trains_on_main
    return trained_on or line.method not in _BLIND


def subject_title(subject: Subject) -> str:
    """The title of a subject, with its number of labels.

    >>> subject_title(Subject("mlc", "celeba", "Smiling", 0.01))
    'celeba: Smiling, 1 % of the labels'
    """
    return f"{topic_title(subject)}, {labels_title(subject)}"


def topic_title(subject: Subject) -> str:
    """The title of a subject, without its number of labels.

    >>> topic_title(Subject("dg", "pacs", "sketch", 5)), topic_title(Subject("dg", "digits", "digits", 2))
    ('pacs: sketch', 'digits domains')
    """
    if subject.main == subject.dataset:
        return f"{subject.dataset} domains"
    return f"{subject.dataset}: {subject.main}" if subject.main else subject.dataset


def experiment_title(subject: Subject, num_tasks: int) -> str:
    """An experiment in words: how many labels of what, and what helps.

    >>> experiment_title(Subject("dg", "digits", "digits", 2), 4)
    '20 digits labels, four other sources'
    >>> experiment_title(Subject("mlc", "yeast", "Class1", 50), 13)
    '50 Class1 labels (yeast), 13 other targets'
    >>> experiment_title(Subject("ssl", "digits", "", 50), 2)
    '50 digits labels, two tasks without labels'
    """
    what = subject.main or subject.dataset
    where = "" if what == subject.dataset else f" ({subject.dataset.split('@')[0]})"
    help_title = {"ssl": "task{} without labels", "mlc": "other target{}", "dg": "other source{}"}.get(subject.setting)
    several = "" if num_tasks == 1 else "s"
    tasks = f", {_in_words(num_tasks)} {help_title.format(several)}" if num_tasks and help_title else ""
    return f"{_count_labels(subject, what)}{where}{tasks}"


def _count_labels(subject: Subject, what: str) -> str:
    if math.isinf(subject.labels):
        return f"all {what} labels"
    if subject.setting != "dg":
        known = subject.labels >= 1
        return f"{subject.labels:g} {what} labels" if known else f"{100 * subject.labels:g} % of the {what} labels"
    classes = _CLASSES.get(subject.dataset)
    if classes is None:
        return f"{subject.labels:g} {what} label{'' if subject.labels == 1 else 's'} per class"
    return f"{classes * subject.labels:g} {what} labels"


def _in_words(n: int) -> str:
    return _NUMBERS[n] if n < len(_NUMBERS) else f"{n}"


_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_CLASSES = {"digits": 10, "digits_misleading": 10, "pacs": 7, "pacs_misleading": 7}
"""Classes of the domains that the package knows; shots are labels per class."""


def labels_title(subject: Subject) -> str:
    """The number of labels, as the setting counts them.

    >>> labels_title(Subject("dg", "pacs", "sketch", 1)), labels_title(Subject("ssl", "digits", "", 50))
    ('1 shot per class', '50 labels')
    """
    if math.isinf(subject.labels):
        return "all labels"
    if subject.setting == "dg":
        return f"{subject.labels:g} shot{'' if subject.labels == 1 else 's'} per class"
    return f"{subject.labels:g} labels" if subject.labels >= 1 else f"{100 * subject.labels:g} % of the labels"


def order(line: Line) -> tuple[int, int, str]:
    """Sort key of lines in a table: learners, then methods, as listed above; unknown names come last."""
    learners, methods = list(_LEARNERS), list(_SUFFIXES)
    learner = learners.index(line.learner) if line.learner in learners else len(learners)
    method = methods.index(line.method) if line.method in methods else len(methods)
    return learner, method, line.variant
