"""The paper's own figures, and how its protocol differs from ours.

Shi et al., *Auxiliary Task Reweighting for Minimum-data Learning*, NeurIPS 2020. Tables 1 and 2 are test errors in %,
with 95 % intervals over 3 runs (formula unstated). The PACS table is accuracy in %, without intervals; here it is
converted to error.
"""

from arml.lab.run import Line, Subject

TABLE_1: dict[tuple[str, int], dict[str, tuple[float, float]]] = {
    ("cifar10", 4000): {
        "supervised": (20.26, 0.38),
        "pi_model": (16.37, 0.63),
        "mean_teacher": (15.87, 0.28),
        "vat": (13.86, 0.27),
        "vat_entmin": (13.13, 0.39),
        "pseudo_label": (17.78, 0.57),
        "uniform": (15.67, 0.29),
        "adaloss": (21.06, 0.17),
        "gradnorm": (14.07, 0.44),
        "cosine_sim": (15.03, 0.31),
        "ol_aux": (16.07, 0.51),
        "grid": (13.76, 0.22),
        "arml": (13.68, 0.35),
    },
    ("svhn", 1000): {
        "supervised": (12.83, 0.47),
        "pi_model": (7.19, 0.27),
        "mean_teacher": (5.65, 0.47),
        "vat": (5.63, 0.20),
        "vat_entmin": (5.35, 0.19),
        "pseudo_label": (7.62, 0.29),
        "uniform": (7.83, 0.33),
        "adaloss": (11.53, 0.39),
        "gradnorm": (7.68, 0.13),
        "cosine_sim": (7.02, 0.25),
        "ol_aux": (7.82, 0.32),
        "grid": (6.07, 0.17),
        "arml": (5.89, 0.22),
    },
}

TABLE_2: dict[str, tuple[float, float]] = {
    "uniform": (6.70, 0.18),
    "adaloss": (7.21, 0.11),
    "gradnorm": (6.44, 0.07),
    "cosine_sim": (6.51, 0.14),
    "ol_aux": (6.32, 0.17),
    "arml": (5.97, 0.18),
}
"""CelebA, main attribute 5_o_Clock_Shadow with 1 % of its labels."""
TABLE_3: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "5_o_Clock_Shadow": (
        ("Mustache", "Bald", "Sideburns", "Rosy_Cheeks", "Goatee"),
        ("Mouth_Slightly_Open", "Male", "Attractive", "Heavy_Makeup", "Smiling"),
    )
}
"""CelebA: for a main attribute, the attributes with the highest and the lowest weights under ARML."""
PACS_TARGETS = ("sketch", "art_painting", "cartoon", "photo")
PACS: dict[tuple[str, str], tuple[float, float, float, float]] = {
    ("baseline", "uniform"): (75.34, 81.25, 77.35, 95.93),
    ("dsam", ""): (77.83, 77.33, 72.43, 95.30),
    ("jigen", "uniform"): (71.35, 79.42, 75.25, 96.03),
    ("shape_bias", ""): (78.62, 83.01, 79.39, 96.83),
    ("jt", "uniform"): (78.52, 83.94, 81.36, 97.01),
    ("fada", "uniform"): (79.23, 83.64, 79.39, 97.07),
    ("baseline", "arml"): (79.35, 82.52, 77.30, 95.99),
    ("jt", "arml"): (80.47, 85.70, 81.01, 97.22),
    ("fada", "arml"): (79.46, 85.16, 81.23, 97.01),
}
"""Accuracy on the targets above, by learner and method, with 5 labelled target images per class."""

QUOTED = ("supervised", "pi_model", "mean_teacher", "vat", "vat_entmin", "pseudo_label")
"""Rows that equal those of Oliver et al. (2018) digit for digit: quoted, not run under the paper's protocol."""
QUOTED_NOTE = (
    "quoted by the paper from Oliver et al. (2018): 500 000 steps, batches of 100, a learning rate for each method"
)
PACS_QUOTED = ("dsam", "jigen")
"""Rows that equal those of the learners' own papers."""

PROTOCOLS = {
    "ssl": "WRN-28-2, 200 000 steps of 128 + 128 images, 3 runs, interval formula unstated; its release reports the "
    f"best test error over time, we choose on validation images. (quoted): {QUOTED_NOTE}",
    "mlc": "ResNet18, 90 epochs of batches of 256, 3 runs, interval formula unstated; image size, momentum and start "
    "are not given",
    "dg": "ResNet18 from ImageNet weights, 100 epochs of batches of 128, tested on the whole target domain, no "
    "interval; accuracies converted to errors. (quoted): from the learner's own paper, without target labels",
}
"""How the paper obtained its figures, by setting."""
FIGURE_2 = "The paper's Figure 2, in words: on CIFAR-10, ARML needs about half of the labels. It gives no numbers."
FIGURE_3 = (
    "The paper's Figure 3, in words: with 1 shot per class and Art as target, ARML brings about 4 points of accuracy."
)
FIGURE_4 = "The paper's Figure 4, in words: weights are barely affected by scarcity. It gives no measure."


def paper_figure(subject: Subject, line: Line) -> str:
    """The error that the paper reports for this line; empty if the paper has no such line.

    >>> paper_figure(Subject("dg", "pacs", "sketch", 5), Line("jt", "arml"))
    '19.53'
    """
    if line.variant or subject.setting not in PROTOCOLS:
        return ""
    return {"ssl": _table_1, "mlc": _table_2, "dg": _pacs}[subject.setting](subject, line)


def has_figures(subject: Subject) -> bool:
    """Whether the paper has a table with this subject."""
    return any(paper_figure(subject, line) for line in (Line("s4l", "arml"), Line("joint", "arml"), Line("jt", "arml")))


def figures_at_other_labels(subject: Subject) -> tuple[int, dict[str, str]] | None:
    """Where the paper has Table 1 for this data set with another number of labels: the number, and its figures by name.

    >>> figures_at_other_labels(Subject("ssl", "cifar10", "", 1000))[1]["arml"]
    '13.68 ± 0.35'
    """
    if subject.setting != "ssl" or has_figures(subject):
        return None
    for (dataset, labels), figures in TABLE_1.items():
        if dataset == subject.dataset:
            return labels, {key: _format(figure, quoted=key in QUOTED) for key, figure in figures.items()}
    return None


def _table_1(subject: Subject, line: Line) -> str:
    figures = TABLE_1.get((subject.dataset, int(subject.labels)), {})
    key = line.method or line.learner
    return _format(figures[key], quoted=key in QUOTED) if key in figures else ""


def _table_2(subject: Subject, line: Line) -> str:
    same = subject[1:] == ("celeba", "5_o_Clock_Shadow", 0.01)
    return _format(TABLE_2[line.method], quoted=False) if same and line.method in TABLE_2 else ""


def _pacs(subject: Subject, line: Line) -> str:
    accuracies = PACS.get((line.learner, line.method))
    if accuracies is None or (subject.dataset, subject.labels) != ("pacs", 5) or subject.main not in PACS_TARGETS:
        return ""
    accuracy = accuracies[PACS_TARGETS.index(subject.main)]
    return f"{100 - accuracy:.2f}" + (" (quoted)" if line.learner in PACS_QUOTED else "")


def _format(figure: tuple[float, float], *, quoted: bool) -> str:
    mean, half_width = figure
    return f"{mean:.2f} ± {half_width:.2f}" + (" (quoted)" if quoted else "")
