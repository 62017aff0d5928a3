"""The paper's own figures: test error in %, with its 95 % intervals over 3 runs (formula unstated)."""

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

QUOTED = ("supervised", "pi_model", "mean_teacher", "vat", "vat_entmin", "pseudo_label")
"""Rows that equal those of Oliver et al. (2018) digit for digit: quoted there, not run under the paper's protocol."""
QUOTED_NOTE = (
    "quoted by the paper from Oliver et al. (2018): 500 000 steps, batches of 100, a learning rate for each method"
)
