"""Titles of lines, subjects and metrics in tables and figures."""

import math

from arml.lab.run import Line, Subject

LEARNERS = {
    "supervised": "Supervised (main task only)",
    "main_only": "Main task only",
    "pi_model": "Π-Model",
    "mean_teacher": "Mean Teacher",
    "vat": "VAT",
    "vat_entmin": "VAT + EntMin",
    "pseudo_label": "Pseudo-Label",
    "s4l": "S4L",
    "joint": "All targets",
    "baseline": "Sources only (Baseline)",
    "jt": "Joint training (JT)",
    "fada": "FADA",
    "jigen": "JiGen",
    "dsam": "D-SAM",
    "shape_bias": "Shape-bias (styles by pixel statistics)",
}
METHODS = {
    "": "",
    "uniform": ", uniform weights",
    "adaloss": " + AdaLoss",
    "gradnorm": " + GradNorm",
    "cosine_sim": " + CosineSim",
    "ol_aux": " + OL_AUX",
    "grid": " + grid search (best on validation)",
    "arml": " + ARML",
    "arml_full": " + ARML, two stages with Langevin noise",
    "gated_arml": " + Gated ARML (ours)",
}
METRICS = {
    "error": "error",
    "average_precision": "average precision",
    "auc": "AUC",
    "majority_error": "majority error",
    "rmse": "RMSE",
}
MAIN_ONLY = ("supervised", "main_only")
"""Learners that see the main task alone."""
SOURCES_ONLY = ("baseline", "jigen", "dsam", "shape_bias")
"""Learners that train on sources alone: labels of the target can steer weights, and do nothing else."""
FIXED = ("uniform", "grid")
"""Methods whose weights stay as they are."""
BLIND = ("", *FIXED, "adaloss", "gradnorm")
"""Methods whose weights do not depend on the main task."""
ARMLS = ("arml", "gated_arml", "arml_full")
"""Methods whose weights a verdict is given on, the one that stands for them first."""


def line_title(line: Line) -> str:
    """The line's title in a table.

    >>> line_title(Line("joint", "arml", "without Male"))
    'All targets + ARML, without Male'
    """
    name = LEARNERS.get(line.learner, line.learner) + METHODS.get(line.method, f" + {line.method}")
    return name + (f", {line.variant}" if line.variant else "")


def uses_labels(line: Line) -> bool:
    """Whether labels of the main task train the network or steer the weights.

    >>> uses_labels(Line("baseline", "arml")), uses_labels(Line("baseline", "uniform"))
    (True, False)
    """
    return line.learner not in SOURCES_ONLY or line.method not in BLIND


def subject_title(subject: Subject) -> str:
    """The title of a subject, with its number of labels.

    >>> subject_title(Subject("mlc", "celeba", "Smiling", 0.01))
    'celeba: Smiling, 1 % of the labels'
    """
    return f"{topic_title(subject)}, {labels_title(subject)}"


def topic_title(subject: Subject) -> str:
    """The title of a subject, without its number of labels.

    >>> topic_title(Subject("dg", "pacs", "sketch", 5))
    'pacs: sketch'
    """
    return f"{subject.dataset}: {subject.main}" if subject.main else subject.dataset


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
    learners, methods = list(LEARNERS), list(METHODS)
    learner = learners.index(line.learner) if line.learner in learners else len(learners)
    method = methods.index(line.method) if line.method in methods else len(methods)
    return learner, method, line.variant
