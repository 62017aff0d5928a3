"""A run as plain data that can be hashed, recorded and repeated. Each setting of the paper has its own class."""

import hashlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from arml.lab import catalogue

if TYPE_CHECKING:
    MethodName: TypeAlias = str
    SemiSupervisedName: TypeAlias = str
    MultiLabelName: TypeAlias = str
    DomainsName: TypeAlias = str
else:  # the catalogue is the only list of names; the command line reads its choices from these types
    MethodName = Literal[catalogue.method_names()]
    SemiSupervisedName = Literal[tuple(catalogue.LEARNERS["ssl"])]
    MultiLabelName = Literal[tuple(catalogue.LEARNERS["mlc"])]
    DomainsName = Literal[tuple(catalogue.LEARNERS["dg"])]


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


READABLE = 40
"""Bytes kept of each part of a run's name. The hash at its end covers every field."""


@dataclass(frozen=True)
class Run(ABC):
    """What the runs of all settings have in common. The command line is made from these fields."""

    setting: ClassVar[str]
    weighted: ClassVar[frozenset[str]]
    """Learners whose auxiliary tasks a method weights."""

    method: MethodName = "arml"
    """How auxiliary losses are weighted; arml_full has two stages, grid-A gives two tasks the weights A and 2 - A."""
    seed: int = 0
    """Seeds the split, the initial network, the batches and the augmentation."""
    steps: int = 200
    """Number of training steps."""
    network: str = "small-32"
    """small-FEATURES or plain-FEATURES such as small-32, wrn-DEPTH-WIDTH such as wrn-28-2, resnet18; mlp-FEATURES."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """Adam, or stochastic gradient descent with momentum."""
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
    """Steps between two updates of the weights."""
    growing: bool = False
    """Update more often at first: after n steps the next update is g = min(every, 1 + n // 10) steps away, and its
    step is sqrt(g) times as long."""
    window: int = 2
    """For arml_full: number of updates in a window, by which convergence is judged."""
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

    def __post_init__(self) -> None:
        """Refuses numbers that no run can have."""
        sizes = [name for name in vars(self) if name.startswith("batch_") or name == "image_size"]
        _at_least(self, 1, ["steps", "every", "window", "evaluate_every", "record_every", "checkpoint_every", *sizes])
        _at_least(self, 0, ("seed", "momentum", "weight_decay", "temperature", "lr_drop", "bn_momentum"))
        for name in ("lr", "weight_lr", "aux_scale"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"`{name}` should be a positive number. Got {value!r}.")

    def name(self) -> str:
        """The name of the run's folder: readable, and unique by a hash of all fields."""
        described = json.dumps({"setting": self.setting, **asdict(self)}, sort_keys=True)
        subject, line = self.subject(), self.line()
        words = [subject.dataset, subject.main, f"{subject.labels:g}", *line, str(self.seed)]
        digest = hashlib.sha256(described.encode()).hexdigest()[:10]
        words = [word.encode()[:READABLE].decode(errors="ignore") for word in words]  # file names have limits, in bytes
        return "-".join(
            "".join(c if c.isalnum() or c in "_." else "_" for c in word) for word in [*words, digest] if word
        )

    @abstractmethod
    def subject(self) -> Subject:
        """What a table with this run is about."""

    @abstractmethod
    def line(self) -> Line:
        """The line of the table that this run belongs to."""

    @abstractmethod
    def reference(self) -> Line:
        """The line this run is compared with: equal weights."""

    def score(self, metrics: Mapping[str, float]) -> float:
        """What networks, and points of a grid, are chosen by on validation examples. Less is better."""
        return metrics["error"]

    def protocol(self) -> str:
        """In words: which network is tested, and on what."""
        return "the network with the least error on validation examples is tested, once"

    def _method(self, learner: str) -> str:
        if learner not in self.weighted:
            return ""
        return catalogue.GRID_SEARCH if self.method.startswith(f"{catalogue.GRID_SEARCH}-") else self.method


@dataclass(frozen=True)
class SemiSupervised(Run):
    """Few labelled and many unlabelled images."""

    setting: ClassVar[str] = "ssl"
    weighted: ClassVar[frozenset[str]] = catalogue.weighted_learners("ssl")

    dataset: Literal["digits", "mnist5k", "cifar10", "svhn"] = "digits"
    """Images to learn from. digits and mnist5k are embedded; cifar10 and svhn are read from the data folder."""
    learner: SemiSupervisedName = "s4l"
    """What to learn from unlabelled images: nothing (supervised), rotation and exemplar (s4l), or consistency."""
    labels: int = 50
    """Labelled training images, balanced over classes."""
    batch_labelled: int = 32
    """Labelled images per step."""
    batch_unlabelled: int = 32
    """Unlabelled images per step."""
    labelled_in_pool: bool = True
    """Whether labelled images also count as unlabelled ones."""

    def subject(self) -> Subject:
        """Data set and number of labels."""
        return Subject(self.setting, self.dataset, "", self.labels)

    def line(self) -> Line:
        """Learner and method."""
        return Line(self.learner, self._method(self.learner))

    def reference(self) -> Line:
        """S4L with equal weights."""
        return Line("s4l", "uniform")


@dataclass(frozen=True)
class MultiLabel(Run):
    """One target with few labels, other targets of the same examples as auxiliary tasks."""

    setting: ClassVar[str] = "mlc"
    weighted: ClassVar[frozenset[str]] = catalogue.weighted_learners("mlc")

    dataset: Literal["yeast", "celeba", "table"] = "yeast"
    """Examples to learn from. yeast is embedded; celeba is read from the data folder; table is your own file."""
    table: str = ""
    """Your own CSV or Parquet file; sets the data set to table."""
    table_digest: str = ""
    """Fingerprint of that file, filled in: a changed file makes another run."""
    main: str = "Class1"
    """The target to learn from few labels."""
    aux: tuple[str, ...] = ()
    """Targets to use as auxiliary tasks, separated by spaces or commas; none: all others of yeast and celeba."""
    leave_out: tuple[str, ...] = ()
    """Auxiliary targets to leave out."""
    features: tuple[str, ...] = ()
    """For a table: columns to learn from, separated by spaces or commas; none: all that are not targets."""
    learner: MultiLabelName = "joint"
    """Learn all targets (joint), or the main one alone (main_only)."""
    labels: float | None = 50.0
    """Training labels of the main target: a number, a share below 1, or none for all of them."""
    batch_main: int = 32
    """Examples with a main label per step."""
    batch_aux: int = 64
    """Examples for the auxiliary targets per step, drawn from all training examples."""
    image_size: int = 64
    """Side of the images in pixels, after scaling."""
    weights: str = ""
    """A file of weights that the trunk starts from, such as torchvision's ResNet18."""
    weights_digest: str = ""
    """Fingerprint of that file, filled in: a changed file makes another run."""
    dropout: float = 0.0
    """For mlp: share of features dropped at random in training."""
    select: Literal["error", "average_precision", "auc"] = "average_precision"
    """Measure that chooses the network on validation examples; numeric targets have only the error."""

    def subject(self) -> Subject:
        """Data set, main target and number of labels."""
        # Results on two tables of the same name, or on one before and after a change, must not be mixed.
        dataset = f"{Path(self.table).stem}@{self.table_digest[:6]}" if self.table else self.dataset
        return Subject(self.setting, dataset, self.main, math.inf if self.labels is None else self.labels)

    def line(self) -> Line:
        """Learner, method and targets left out."""
        return Line(self.learner, self._method(self.learner), _describe_variant(self.leave_out))

    def reference(self) -> Line:
        """All targets, with equal weights."""
        return Line("joint", "uniform")

    def score(self, metrics: Mapping[str, float]) -> float:
        """The measure named by ``select``; the error for targets that have no other, such as numbers."""
        return metrics["error"] if self.select not in metrics or self.select == "error" else -metrics[self.select]

    def protocol(self) -> str:
        """The best network on validation examples, by the measure that ``select`` names."""
        if self.select == "error":
            return super().protocol()
        measure = {"average_precision": "average precision", "auc": "AUC"}[self.select]
        return f"the network with the best {measure} on validation examples is tested, once (numbers: the least error)"


@dataclass(frozen=True)
class Domains(Run):
    """One target domain with few labelled images, source domains as auxiliary tasks."""

    setting: ClassVar[str] = "dg"
    weighted: ClassVar[frozenset[str]] = catalogue.weighted_learners("dg")

    dataset: Literal["digits", "digits_misleading", "pacs", "folders"] = "digits"
    """Domains to learn from. digits has one misleading source; in digits_misleading all sources mislead; pacs is read
    from the data folder; folders are your own, see --folders."""
    folders: str = ""
    """Your own folder with <domain>/<class>/<image>; sets the data set to folders."""
    folders_digest: str = ""
    """Fingerprint of its files, filled in: a changed file makes another run."""
    target: str = "digits"
    """The domain to learn from few labels; all others are sources."""
    leave_out: tuple[str, ...] = ()
    """Sources to leave out."""
    learner: DomainsName = "jt"
    """Learn from target shots (main_only), from sources (baseline), from both (jt), or as another paper does."""
    shots: int | Literal["all"] = 2
    """Labelled target images per class: 0 or more, or all."""
    batch_source: int = 32
    """Images of each source per step."""
    batch_target: int = 20
    """Target shots per step."""
    image_size: int = 16
    """Side of the images in pixels, after scaling; digits always have 16."""
    weights: str = ""
    """A file of weights that the trunk starts from, such as torchvision's ResNet18."""
    weights_digest: str = ""
    """Fingerprint of that file, filled in: a changed file makes another run."""
    select: Literal["last", "sources"] = "last"
    """Which network is tested: the last one, or the best on the sources' validation images."""
    aux_scale: float = 1.0
    """Factor on the mean of the sources' losses: each loss is first divided by the number of sources."""

    def __post_init__(self) -> None:
        """Refuses a negative number of shots, too."""
        super().__post_init__()
        if self.shots != "all":
            _at_least(self, 0, ["shots"])

    def subject(self) -> Subject:
        """Data set, target domain and shots."""
        folder = Path(self.folders).resolve().name
        dataset = f"{folder}@{self.folders_digest[:6]}" if self.folders else self.dataset
        return Subject(self.setting, dataset, self.target, math.inf if self.shots == "all" else self.shots)

    def line(self) -> Line:
        """Learner, method and sources left out."""
        return Line(self.learner, self._method(self.learner), _describe_variant(self.leave_out))

    def protocol(self) -> str:
        """The last network, or the best on the sources. Shots are not test images."""
        chosen = (
            "of the last step" if self.select == "last" else "with the least error on the sources' validation images"
        )
        return f"the network {chosen} is tested, once, on target images without the shots it learned from"

    def reference(self) -> Line:
        """The same learner with equal weights; joint training for those without weights."""
        return Line(self.learner if self.learner in self.weighted else "jt", "uniform")


def _at_least(run: Run, least: float, names: Sequence[str]) -> None:
    for name in names:
        value = getattr(run, name)
        if not least <= value < math.inf:
            raise ValueError(f"`{name}` should be at least {least}. Got {value!r}.")


def split_names(names: Sequence[str]) -> tuple[str, ...]:
    """Splits names that were given one by one or with commas between them.

    >>> split_names(["age,ward", "height"])
    ('age', 'ward', 'height')
    """
    return tuple(part.strip() for name in names for part in name.split(",") if part.strip())


def _describe_variant(left_out: tuple[str, ...]) -> str:
    return f"without {', '.join(left_out)}" if left_out else ""


RUN_TYPES: dict[str, type[Run]] = {kind.setting: kind for kind in (SemiSupervised, MultiLabel, Domains)}
"""The kinds of run by the name of their setting in records and commands."""


def is_done(folder: Path) -> bool:
    """Whether the run in ``folder`` has been completed."""
    return (folder / "done").exists()
