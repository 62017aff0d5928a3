"""What is known about every method and every learner, in one place. Everything else is derived from it.

To add a method, write its file in ``arml/methods`` and one line in ``METHODS`` below. The command line then offers it,
every comparison includes it unless it is marked ``compared=False``, and tables know its title.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import arml

if TYPE_CHECKING:  # methods are imported when one is made, so that names alone do not load torch
    from arml.methods import Method

T = TypeVar("T")


class HasLastLayer(Protocol):
    """A trunk, as far as methods are concerned."""

    last_layer: str
    """Name of the last layer with weights."""


MakeMethod: TypeAlias = Callable[[HasLastLayer], "Method[Any]"]


@dataclass(frozen=True)
class MethodFacts:
    """A method that weights auxiliary losses."""

    make: MakeMethod
    """Makes the method for a trunk; only GradNorm looks at the trunk."""
    suffix: str
    """What a table adds to the learner's title."""
    learned: bool = True
    """Whether the weights change during training."""
    steered: bool = True
    """Whether the weights depend on the main task."""
    two_stages: bool = False
    """Whether training adds Langevin noise until the weights converge, and then keeps them."""
    compared: bool = True
    """Whether comparisons include it unless told otherwise; ``--methods`` names any."""
    sets_its_own_scale: bool = False
    """Whether the method has a schedule and a total of its own: ``every`` and divisors of the losses do not apply."""
    rank_in_verdict: int | None = None
    """Order of the methods whose weights the report judges; ``None``: not judged."""
    paper: str = ""
    """Where the method comes from."""


@dataclass(frozen=True)
class LearnerFacts:
    """A way to learn, with or without auxiliary tasks."""

    title: str
    weighted: bool = False
    """Whether it has auxiliary tasks that a method weights."""
    main_only: bool = False
    """Whether it sees the main task alone."""
    simple: bool = False
    """Whether it is a model of scikit-learn without a network, for tables."""
    trains_on_main: bool = True
    """Whether labels of the main task train the network; if not, they can only steer the weights."""
    paper: str = ""
    """Where the learner comes from."""


_ARML = "Shi et al., Auxiliary Task Reweighting for Minimum-data Learning, NeurIPS 2020"

METHODS: dict[str, MethodFacts] = {
    "uniform": MethodFacts(lambda _: arml.Uniform(), ", uniform weights", learned=False, steered=False),
    "adaloss": MethodFacts(lambda _: arml.AdaLoss(), " + AdaLoss", steered=False, paper="Hu et al., AAAI 2019"),
    "gradnorm": MethodFacts(
        lambda trunk: arml.GradNorm(layer=trunk.last_layer),
        " + GradNorm",
        steered=False,
        paper="Chen et al., ICML 2018",
    ),
    "cosine_sim": MethodFacts(lambda _: arml.CosineSim(), " + CosineSim", paper="Du et al., arXiv:1812.02224"),
    "ol_aux": MethodFacts(lambda _: arml.OLAUX(), " + OL_AUX", paper="Lin et al., NeurIPS 2019"),
    "dwa": MethodFacts(lambda _: arml.DWA(), " + DWA", steered=False, compared=False, paper="Liu et al., CVPR 2019"),
    "uncertainty": MethodFacts(
        lambda _: arml.UncertaintyWeighting(),
        " + uncertainty weighting",
        steered=False,
        compared=False,
        paper="Kendall et al., CVPR 2018",
    ),
    "famo": MethodFacts(
        lambda _: arml.FAMO(), " + FAMO", steered=False, compared=False, paper="Liu et al., NeurIPS 2023"
    ),
    "metabalance": MethodFacts(
        lambda _: arml.MetaBalance(), " + MetaBalance", compared=False, paper="He et al., WWW 2022"
    ),
    "weighted_cosine_sim": MethodFacts(
        lambda _: arml.WeightedCosineSim(),
        " + weighted CosineSim",
        compared=False,
        paper="Du et al., arXiv:1812.02224",
    ),
    "pri_pcgrad": MethodFacts(
        lambda _: arml.PriPCGrad(), " + PriPCGrad", compared=False, paper="Yu et al., NeurIPS 2020"
    ),
    "tawt": MethodFacts(lambda _: arml.TAWT(), " + TAWT", compared=False, paper="Chen et al., ICLR 2022"),
    "auto_lambda": MethodFacts(
        lambda _: arml.AutoLambda(), " + Auto-Lambda, first order", compared=False, paper="Liu et al., TMLR 2022"
    ),
    "auxi_nash": MethodFacts(
        lambda _: arml.AuxiNash(), " + AuxiNash", compared=False, paper="Shamsian et al., ICML 2023"
    ),
    "doge": MethodFacts(lambda _: arml.DoGE(), " + DoGE", compared=False, paper="Fan et al., ICML 2024"),
    "exp3": MethodFacts(lambda _: arml.EXP3(), " + EXP3, as in FLAD", compared=False, paper="NeurIPS 2023"),
    "arml": MethodFacts(lambda _: arml.ARML(), " + ARML", rank_in_verdict=1, paper=_ARML),
    "arml_full": MethodFacts(
        lambda _: arml.ARML(),
        " + ARML, two stages with Langevin noise",
        two_stages=True,
        rank_in_verdict=3,
        paper=_ARML,
    ),
    "gated_arml": MethodFacts(lambda _: arml.GatedARML(), " + Gated ARML (ours)", rank_in_verdict=2),
    "agreement": MethodFacts(
        lambda _: arml.Agreement(), " + Agreement (ours, recommended)", sets_its_own_scale=True, rank_in_verdict=0
    ),
}
"""Methods by the name that commands and records use, in the order of tables."""

COMPARED_METHODS: tuple[str, ...] = tuple(name for name, facts in METHODS.items() if facts.compared)
"""Methods that a comparison includes unless told otherwise, in the order of tables."""

GRID_SEARCH = "grid"
"""The line of a table that holds the best point of a grid search."""


def _grid_points(num_tasks: int, step: float = 0.5) -> dict[str, MethodFacts]:
    """Fixed weights of ``num_tasks`` tasks, multiples of ``step`` that sum to ``num_tasks``, by name."""
    parts = round(num_tasks / step)
    points = [weights for weights in product(range(parts + 1), repeat=num_tasks) if sum(weights) == parts]
    return {_grid_name(point): _grid_point(point) for point in ([step * w for w in weights] for weights in points)}


def _grid_name(weights: Sequence[float]) -> str:
    """All weights; of two, the first, which determines the other."""
    return "-".join([GRID_SEARCH, *(f"{weight:g}" for weight in (weights[:1] if len(weights) == 2 else weights))])


def _grid_point(weights: Sequence[float]) -> MethodFacts:
    return MethodFacts(lambda _: arml.Fixed(weights), "", learned=False, steered=False)


GRID: dict[str, MethodFacts] = _grid_points(2)
"""The points of the grid search over two auxiliary tasks, by name: grid-A gives them the weights A and 2 - A."""
GRIDS: dict[int, dict[str, MethodFacts]] = {2: GRID, 3: _grid_points(3)}
"""The grids by number of auxiliary tasks; grid-A-B-C gives three of them these weights. More would take too long."""


def grid_for(num_tasks: int) -> dict[str, MethodFacts]:
    """The points of the grid search over so many auxiliary tasks, by name.

    >>> list(grid_for(2))
    ['grid-0', 'grid-0.5', 'grid-1', 'grid-1.5', 'grid-2']
    >>> len(grid_for(3)), "grid-0.5-1-1.5" in grid_for(3)
    (28, True)
    """
    if num_tasks not in GRIDS:
        raise ValueError(f"The grid search is for two or three auxiliary tasks. Got {num_tasks}. Leave --grid out.")
    return GRIDS[num_tasks]


_OLIVER = "as in Oliver et al., Realistic Evaluation of Deep Semi-Supervised Learning Algorithms, NeurIPS 2018"

LEARNERS: dict[str, dict[str, LearnerFacts]] = {
    "ssl": {
        "supervised": LearnerFacts("Supervised (main task only)", main_only=True),
        "pi_model": LearnerFacts("Π-Model", paper=f"Laine and Aila, ICLR 2017, {_OLIVER}"),
        "mean_teacher": LearnerFacts("Mean Teacher", paper=f"Tarvainen and Valpola, NeurIPS 2017, {_OLIVER}"),
        "vat": LearnerFacts("VAT", paper=f"Miyato et al., TPAMI 2018, {_OLIVER}"),
        "vat_entmin": LearnerFacts("VAT + EntMin", paper=f"Miyato et al., TPAMI 2018, {_OLIVER}"),
        "pseudo_label": LearnerFacts("Pseudo-Label", paper=f"Lee, ICML workshop 2013, {_OLIVER}"),
        "s4l": LearnerFacts("S4L", weighted=True, paper="Zhai et al., ICCV 2019"),
    },
    "mlc": {
        "main_only": LearnerFacts("Main task only", main_only=True),
        "joint": LearnerFacts("All targets", weighted=True),
        "forkmerge": LearnerFacts("ForkMerge (two branches)", paper="Jiang et al., NeurIPS 2023"),
        "linear": LearnerFacts("Logistic or ridge regression, main labels alone", simple=True),
        "forest": LearnerFacts("Random forest, main labels alone", simple=True),
        "stacking": LearnerFacts("Regression on inputs and predicted auxiliaries (stacking)", simple=True),
        "aux_inputs": LearnerFacts("Regression with the auxiliary columns as inputs, known at prediction", simple=True),
    },
    "dg": {
        "main_only": LearnerFacts("Main task only", main_only=True),
        "baseline": LearnerFacts("Sources only (Baseline)", weighted=True, trains_on_main=False, paper=_ARML),
        "jt": LearnerFacts("Joint training (JT)", weighted=True, paper=_ARML),
        "fada": LearnerFacts("FADA", weighted=True, paper="Motiian et al., NeurIPS 2017"),
        "jigen": LearnerFacts("JiGen", weighted=True, trains_on_main=False, paper="Carlucci et al., CVPR 2019"),
        "dsam": LearnerFacts("D-SAM", trains_on_main=False, paper="D'Innocente and Caputo, GCPR 2018"),
        "shape_bias": LearnerFacts(
            "Shape-bias (styles by pixel statistics)", trains_on_main=False, paper="Asadi et al., 2019"
        ),
    },
    "suite": {
        "main_only": LearnerFacts("Main task only", main_only=True),
        "oracle": LearnerFacts("Oracle: helpful tasks only, uniform weights"),
        "joint": LearnerFacts("All targets", weighted=True),
    },
}
"""Learners of each setting by name, in the order of tables."""


def method_names() -> tuple[str, ...]:
    """Every name that ``--method`` takes."""
    return (*METHODS, *GRID, *GRIDS[3])


def find_method(name: str) -> MethodFacts:
    """The facts about a method or a point of the grid search."""
    return choose({**METHODS, **GRID, **GRIDS[3]}, name, "method")


def weighted_learners(setting: str) -> frozenset[str]:
    """Learners of ``setting`` whose auxiliary tasks a method weights."""
    return frozenset(name for name, facts in LEARNERS[setting].items() if facts.weighted)


def choose(table: Mapping[str, T], name: str, what: str) -> T:
    """The entry of ``table``, or an error that lists the known names."""
    if name not in table:
        raise ValueError(f"Unknown {what} {name!r}. Known: {', '.join(sorted(table))}.")
    return table[name]
