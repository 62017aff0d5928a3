"""A run as plain data that can be hashed, recorded and repeated: what the runs of all settings have in common."""

import csv
import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

from arml.lab.bounds import check_at_most
from arml.lab.catalogue import GRID_SEARCH, method_names

if TYPE_CHECKING:
    MethodName: TypeAlias = str
else:  # the catalogue is the only list of names; the command line reads its choices from this type
    MethodName = Literal[method_names()]


class Subject(NamedTuple):
    """What a table of results is about. Runs with the same subject are compared with each other."""

    setting: str
    dataset: str
    main: str
    """The main task, where the data set offers several."""
    labels: float
    """Labels of the main task, as the setting counts them: a number, a share below 1, or shots per class."""


class Line(NamedTuple):
    """A line of such a table. Its runs differ in the seed, or are points of one grid search."""

    learner: str
    method: str = ""
    """Empty for learners whose auxiliary tasks no method weights."""
    variant: str = ""
    """What else sets the line apart, such as tasks that are left out."""


LONGEST = 200
"""Bytes of a file's name, without its suffix."""
READABLE = 40
"""Bytes kept of each part of a run's name. The hash at its end covers every field."""


@dataclass(frozen=True)
class Run(ABC):
    """What the runs of all settings have in common. The command line is made from these fields."""

    setting: ClassVar[str]
    weighted: ClassVar[frozenset[str]]
    """Learners whose auxiliary tasks a method weights."""
    added_later: ClassVar[Mapping[str, Any]] = {"precision": "fp32", "compile": False, "on_nan": "stop"}
    """Fields that runs did not always have, and their values before."""

    method: MethodName = "arml"
    """How auxiliary losses are weighted. arml_full has two stages. grid-A gives two tasks the weights A and 2 - A,
    grid-A-B-C gives three tasks these weights."""
    seed: int = 0
    """Seeds the split, the initial network, the batches and the augmentation."""
    steps: int = 200
    """Number of training steps."""
    network: str = "small-32"
    """small-FEATURES or plain-FEATURES such as small-32, wrn-DEPTH-WIDTH such as wrn-28-2, resnet18,
    efficientnet-lite0 (trained on ImageNet); mlp-FEATURES for tables."""
    optimizer: Literal["adam", "adamw", "sgd"] = "adam"
    """Adam, AdamW, which decays weights apart from the gradient, or stochastic gradient descent with momentum."""
    lr: float | None = 0.003
    """Step size of the optimiser; none: the learner's own, from its paper."""
    momentum: float = 0.9
    """Momentum of stochastic gradient descent."""
    weight_decay: float = 0.0
    """Weight decay: this factor times the parameter is added to its gradient."""
    lr_drop_at: tuple[float, ...] = (0.8,)
    """When the step size falls, as shares of all steps."""
    lr_drop: float = 0.2
    """Factor by which the step size falls each time."""
    weight_lr: float | None = None
    """Step size of the weights of ARML, Gated ARML and OL_AUX; none: the method's own default."""
    every: int = 5
    """Steps between two updates of the weights; agreement has a schedule of its own."""
    growing: bool = False
    """Update more often at first: after n steps the next update is g = min(every, 1 + n // 10) steps away, and its
    step is sqrt(g) times as long."""
    window: int = 2
    """For arml_full: the least number of updates per quarter of the history when convergence is first judged. That is
    not before a quarter of the run, and the first stage ends after half of it."""
    temperature: float = 1.0
    """For arml_full: temperature of the Langevin noise."""
    aux_scale: float = 1.0
    """Factor on every auxiliary loss, applied before anything else sees it."""
    bn_momentum: float = 0.1
    """How fast BatchNorm's running statistics follow."""
    evaluate_every: int = 50
    """Steps between two evaluations on the validation examples."""
    record_every: int = 25
    """Steps between two recorded steps."""
    checkpoint_every: int = 100
    """Steps between two checkpoints."""
    precision: Literal["fp32", "bf16", "fp16", "fp64"] = "fp32"
    """Precision of the passes. bf16 and fp16 keep parameters in fp32 (autocast); fp64 is for exact comparisons."""
    compile: bool = False
    """Compile the trunk with torch.compile, where that works with the learner. The first steps then take longer."""
    on_nan: Literal["stop", "skip"] = "stop"
    """What to do at a step whose loss is not finite: end the run as diverged, or leave the step out."""

    def __post_init__(self) -> None:
        """Refuses numbers that no run can have."""
        sizes = [name for name in vars(self) if name.startswith("batch_") or name == "image_size"]
        check_at_least(
            self, 1, ["steps", "every", "window", "evaluate_every", "record_every", "checkpoint_every", *sizes]
        )
        check_at_least(self, 0, ("seed", "momentum", "weight_decay", "temperature", "lr_drop", "bn_momentum"))
        check_at_most(vars(self))
        for name in ("lr", "weight_lr", "aux_scale"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"`{name}` should be a positive number. Got {value!r}.")

    def name(self) -> str:
        """The name of the run's folder: readable, and unique by a hash of all fields."""
        described = json.dumps({"setting": self.setting, **self.described()}, sort_keys=True)
        subject, line = self.subject(), self.line()
        words = [subject.dataset, subject.main, f"{subject.labels:g}", *line, str(self.seed)]
        digest = hashlib.sha256(described.encode()).hexdigest()[:10]
        words = [word.encode()[:READABLE].decode(errors="ignore") for word in words]  # file names have limits, in bytes
        return "-".join(
            "".join(c if c.isalnum() or c in "_." else "_" for c in word) for word in [*words, digest] if word
        )

    def described(self) -> dict[str, Any]:
        """All fields, as records have them. What was added later is left out at its default: old names stay."""
        added = self.added_later
        return {name: value for name, value in asdict(self).items() if name not in added or value != added[name]}

    @abstractmethod
    def subject(self) -> Subject:
        """What a table with this run is about."""

    @abstractmethod
    def line(self) -> Line:
        """The line of the table that this run belongs to."""

    @abstractmethod
    def reference(self) -> Line:
        """The line this run is compared with: equal weights."""

    def measure(self) -> str:
        """The name of the measure that chooses the network."""
        return "error"

    def score(self, metrics: Mapping[str, float]) -> float:
        """What networks, and points of a grid, are chosen by on validation examples. Less is better."""
        return metrics["error"]

    def overlap(self) -> float:
        """Test rows over other rows where seeds divide the same rows again and again; 0: seeds count as independent."""
        return 0.0

    def protocol(self) -> str:
        """In words: which network is tested, and on what."""
        return "the network with the least error on validation examples is tested, once"

    def _method(self, learner: str) -> str:
        if learner not in self.weighted:
            return ""
        return GRID_SEARCH if self.method.startswith(f"{GRID_SEARCH}-") else self.method


def check_at_least(run: Run, least: float, names: Sequence[str]) -> None:
    """Raises an error for fields below ``least``, and for infinite ones."""
    for name in names:
        value = getattr(run, name)
        if not least <= value < math.inf:
            raise ValueError(f"`{name}` should be at least {least}. Got {value!r}.")


def fit_file_name(name: str) -> str:
    """A name that file systems take: one of more than 200 bytes ends in a hash of all of it.

    >>> fit_file_name("compare-mlc-flowers"), len(fit_file_name("x" * 300))
    ('compare-mlc-flowers', 200)
    """
    words = name.encode()
    if len(words) <= LONGEST:
        return name
    return f"{words[: LONGEST - 11].decode(errors='ignore')}-{hashlib.sha256(words).hexdigest()[:10]}"


def split_names(names: Sequence[str], known: Collection[str] = ()) -> tuple[str, ...]:
    """Splits names that were given one by one or with commas between them.

    A name that is ``known`` as it is, or in double quotes, may contain commas.

    >>> split_names(["age,ward", "height"])
    ('age', 'ward', 'height')
    >>> split_names(["height, cm", "age"], known=["age", "height, cm"])
    ('height, cm', 'age')
    >>> split_names(['"height, cm",age'])
    ('height, cm', 'age')
    """
    parts = [[name] if name in known else next(csv.reader([name], skipinitialspace=True), []) for name in names]
    return tuple(part.strip() for group in parts for part in group if part.strip())
