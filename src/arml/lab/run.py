"""What a run is: plain data that can be hashed, recorded and repeated. One class for each setting of the paper."""

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
    """What a table of results is about: runs with the same subject are compared with each other."""

    setting: str
    dataset: str
    main: str
    """The main task, where the data set offers several."""
    labels: float
    """Labels of the main task: a number, a share below 1, or shots a class, as the setting counts them."""


class Line(NamedTuple):
    """A line of such a table: runs of one line differ in the seed, or are points of one grid search."""

    learner: str
    method: str = ""
    """Empty for learners that weigh no auxiliary task."""
    variant: str = ""
    """What else sets the line apart, such as tasks that were left out."""


READABLE = 40
"""Bytes of each part of a run's name that are kept; the hash at its end is of all."""


@dataclass(frozen=True)
class Run(ABC):
    """What the runs of all settings have. The command line is made from these fields."""

    setting: ClassVar[str]
    weighted: ClassVar[frozenset[str]]
    """Learners that have auxiliary tasks to weigh."""

    method: MethodName = "arml"
    """How auxiliary losses are weighed; arml_full has two stages, grid-A gives two tasks A and 2 - A."""
    seed: int = 0
    """Of split, initial network, batches and augmentation."""
    steps: int = 200
    """Training steps."""
    network: str = "small-32"
    """small-FEATURES or plain-FEATURES such as small-32, wrn-DEPTH-WIDTH such as wrn-28-2, resnet18; mlp-FEATURES."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """Adam, or stochastic gradient descent with momentum."""
    lr: float | None = 0.003
    """Step size of the optimiser; none: the learner's own, from its paper."""
    momentum: float = 0.9
    """Of stochastic gradient descent."""
    weight_decay: float = 0.0
    """Added to the gradient, times the parameter."""
    lr_drop_at: tuple[float, ...] = (0.8,)
    """Shares of the steps after which the step size falls."""
    lr_drop: float = 0.2
    """Factor by which it falls each time."""
    weight_lr: float | None = None
    """Step size of the weights of ARML, Gated ARML and OL_AUX; none: the method's own default."""
    every: int = 5
    """Steps between two updates of the weights."""
    growing: bool = False
    """Update more often at first: after n steps the next update is g = 1 + n // 10 steps away, but --every at most, and
    goes root g times as far."""
    window: int = 2
    """For arml_full: updates in a window by which convergence is judged."""
    temperature: float = 1.0
    """For arml_full: of the Langevin noise."""
    aux_scale: float = 1.0
    """Factor on every auxiliary loss before anything else sees it."""
    bn_momentum: float = 0.1
    """How fast BatchNorm's running statistics follow."""
    evaluate_every: int = 50
    """Steps between two looks at the validation examples."""
    record_every: int = 25
    """Steps between two recorded steps."""
    checkpoint_every: int = 100
    """Steps between two checkpoints."""

    def __post_init__(self) -> None:
        """Numbers that no run can have are refused before it starts."""
        sizes = [name for name in vars(self) if name.startswith("batch_") or name == "image_size"]
        _at_least(self, 1, ["steps", "every", "window", "evaluate_every", "record_every", "checkpoint_every", *sizes])
        _at_least(self, 0, ("seed", "momentum", "weight_decay", "temperature", "lr_drop", "bn_momentum"))
        for name in ("lr", "weight_lr", "aux_scale"):
            value = getattr(self, name)
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"`{name}` should be a positive number. Got {value!r}.")

    def name(self) -> str:
        """The run's folder: readable, and unique by a hash of all fields."""
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
        """The line it is compared with: equal weights."""

    def score(self, metrics: Mapping[str, float]) -> float:
        """By what the network, and a point of a grid, are chosen on validation examples: less is better."""
        return metrics["error"]

    def protocol(self) -> str:
        """Which network is tested, and on what, in words."""
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
    """Images to learn from: digits and mnist5k are embedded; cifar10 and svhn are read from the data folder."""
    learner: SemiSupervisedName = "s4l"
    """What is learned from unlabelled images: nothing (supervised), rotation and exemplar (s4l), or consistency."""
    labels: int = 50
    """Labelled training images, balanced over classes."""
    batch_labelled: int = 32
    """Labelled images in a step."""
    batch_unlabelled: int = 32
    """Unlabelled images in a step."""
    labelled_in_pool: bool = True
    """Whether labelled images are also used as unlabelled ones."""

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
    """Examples: yeast is embedded; celeba is read from the data folder; table is a file of your own, see --table."""
    table: str = ""
    """A CSV or Parquet file to learn from; sets the data set to table."""
    table_digest: str = ""
    """Fingerprint of that file, filled in: runs on an earlier content of it are not taken for runs on this one."""
    main: str = "Class1"
    """The target to be learned from few labels."""
    aux: tuple[str, ...] = ()
    """Targets that are auxiliary tasks, separated by spaces or commas; none: all others of yeast and celeba."""
    leave_out: tuple[str, ...] = ()
    """Auxiliary targets that are not used."""
    features: tuple[str, ...] = ()
    """For a table: columns to learn from, separated by spaces or commas; none: all that are no target."""
    learner: MultiLabelName = "joint"
    """Learn all targets (joint), or the main one alone (main_only)."""
    labels: float | None = 50.0
    """Labels of the main target for training: how many, below 1 which share, or none: all there are."""
    batch_main: int = 32
    """Examples with a main label in a step."""
    batch_aux: int = 64
    """Examples for the auxiliary targets in a step, drawn from all training examples."""
    image_size: int = 64
    """Side to which images are scaled."""
    weights: str = ""
    """A file of weights that the trunk starts from, such as torchvision's ResNet18."""
    weights_digest: str = ""
    """Fingerprint of that file, filled in, as for a table."""
    dropout: float = 0.0
    """For mlp: share of features left out at random in training."""
    select: Literal["error", "average_precision", "auc"] = "average_precision"
    """What the network is chosen by on validation examples; targets that are numbers have only the error."""

    def subject(self) -> Subject:
        """Data set, main target and number of labels."""
        # Of two tables with the same name, or of one that was changed, results must not be put together.
        dataset = f"{Path(self.table).stem}@{self.table_digest[:6]}" if self.table else self.dataset
        return Subject(self.setting, dataset, self.main, math.inf if self.labels is None else self.labels)

    def line(self) -> Line:
        """Learner, method and targets left out."""
        return Line(self.learner, self._method(self.learner), _without(self.leave_out))

    def reference(self) -> Line:
        """All targets with equal weights."""
        return Line("joint", "uniform")

    def score(self, metrics: Mapping[str, float]) -> float:
        """The measure of ``select``; the error where there is no other, as for numbers."""
        return metrics["error"] if self.select not in metrics or self.select == "error" else -metrics[self.select]

    def protocol(self) -> str:
        """The network that is best on validation examples, by whatever measure."""
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
    """Domains: digits has one misleading source, digits_misleading only such; pacs or your own folders are read."""
    folders: str = ""
    """A folder of your own with <domain>/<class>/<image>; sets the data set to folders."""
    folders_digest: str = ""
    """Fingerprint of its files, filled in: runs on an earlier content of it are not taken for runs on this one."""
    target: str = "digits"
    """The domain to be learned from few labels; all others are sources."""
    leave_out: tuple[str, ...] = ()
    """Sources that are not used."""
    learner: DomainsName = "jt"
    """Target shots alone (main_only), sources alone (baseline), both (jt), or one of the compared learners."""
    shots: int | Literal["all"] = 2
    """Labelled target images of each class, 0 or more, or all."""
    batch_source: int = 32
    """Images of each source in a step."""
    batch_target: int = 20
    """Target shots in a step."""
    image_size: int = 16
    """Side to which images are scaled; digits always have 16."""
    weights: str = ""
    """A file of weights that the trunk starts from, such as torchvision's ResNet18."""
    weights_digest: str = ""
    """Fingerprint of that file, filled in: runs on an earlier content of it are not taken for runs on this one."""
    select: Literal["last", "sources"] = "last"
    """Which network is tested: that of the last step, or the best on the sources' validation images."""
    aux_scale: float = 1.0
    """Factor on the mean of the sources' losses: each is divided by the number of sources before anything else."""

    def __post_init__(self) -> None:
        """Shots are counted, unless all are meant."""
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
        return Line(self.learner, self._method(self.learner), _without(self.leave_out))

    def protocol(self) -> str:
        """The last network, or the best on the sources; shots are no test images."""
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


def separated(names: Sequence[str]) -> tuple[str, ...]:
    """Names that were given one by one or with commas between them.

    >>> separated(["age,ward", "height"])
    ('age', 'ward', 'height')
    """
    return tuple(part.strip() for name in names for part in name.split(",") if part.strip())


def _without(left_out: tuple[str, ...]) -> str:
    return f"without {', '.join(left_out)}" if left_out else ""


RUN_TYPES: dict[str, type[Run]] = {kind.setting: kind for kind in (SemiSupervised, MultiLabel, Domains)}
"""The kinds of run by the name of their setting in records and commands."""


def is_done(folder: Path) -> bool:
    """Whether the run in ``folder`` has been completed."""
    return (folder / "done").exists()
