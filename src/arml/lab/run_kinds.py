"""The run of each setting of the paper: few labels beside unlabelled images, other targets, or other domains."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from arml.lab.catalogue import LEARNERS, weighted_learners
from arml.lab.own_loop import OwnLoop
from arml.lab.run import Line, Run, Subject, check_at_least

if TYPE_CHECKING:
    SemiSupervisedName: TypeAlias = str
    MultiLabelName: TypeAlias = str
    DomainsName: TypeAlias = str
    SuiteName: TypeAlias = str
else:  # the catalogue is the only list of names; the command line reads its choices from these types
    SemiSupervisedName = Literal[tuple(LEARNERS["ssl"])]
    MultiLabelName = Literal[tuple(LEARNERS["mlc"])]
    DomainsName = Literal[tuple(LEARNERS["dg"])]
    SuiteName = Literal[tuple(LEARNERS["suite"])]

FOLDS = 5
"""Parts of a user's table: each seed is tested on one of them, so that as many seeds test every labelled row once."""


@dataclass(frozen=True)
class SemiSupervised(Run):
    """Few labelled and many unlabelled images."""

    setting: ClassVar[str] = "ssl"
    weighted: ClassVar[frozenset[str]] = weighted_learners("ssl")
    added_later: ClassVar[Mapping[str, Any]] = {**Run.added_later, "leave_out": ()}

    dataset: Literal["digits", "mnist5k", "cifar10", "svhn"] = "digits"
    """Images to learn from. digits and mnist5k are embedded; cifar10 and svhn are read from the data folder."""
    learner: SemiSupervisedName = "s4l"
    """What to learn from unlabelled images: nothing (supervised), rotation and exemplar (s4l), or consistency.
    Only the losses of s4l are weighted by --method; all others have the weights of their papers."""
    labels: int = 50
    """Labelled training images, balanced over classes."""
    batch_labelled: int = 32
    """Labelled images per step."""
    batch_unlabelled: int = 32
    """Unlabelled images per step."""
    supervised_batch: int | None = None
    """Labelled images per step of supervised, which has no unlabelled ones; none: --batch-labelled."""
    labelled_in_pool: bool = True
    """Whether labelled images also count as unlabelled ones."""
    leave_out: tuple[str, ...] = ()
    """Auxiliary tasks of s4l to leave out: rotation or exemplar."""
    as_released: bool = False
    """Where the authors' release departs from the paper's text, follow the release: s4l's student view is also
    augmented as for the main task, its exemplar loss is 2 - cos, and the finite difference of vat is over 1e-6."""

    def __post_init__(self) -> None:
        """Refuses an empty batch of supervised learning, too."""
        super().__post_init__()
        if self.supervised_batch is not None:
            check_at_least(self, 1, ["supervised_batch"])

    def subject(self) -> Subject:
        """Data set and number of labels."""
        return Subject(self.setting, self.dataset, "", self.labels)

    def line(self) -> Line:
        """Learner, method and tasks left out."""
        return Line(self.learner, self._method(self.learner), _describe_variant(self.leave_out))

    def reference(self) -> Line:
        """S4L with equal weights."""
        return Line("s4l", "uniform")


@dataclass(frozen=True)
class MultiLabel(Run):
    """One target with few labels, other targets of the same examples as auxiliary tasks."""

    setting: ClassVar[str] = "mlc"
    weighted: ClassVar[frozenset[str]] = weighted_learners("mlc")
    added_later: ClassVar[Mapping[str, Any]] = {
        **Run.added_later,
        "freeze": 0,
        "cache_features": False,
        "pieces": 0,
        "numbers": (),
    }

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
    numbers: tuple[str, ...] = ()
    """For a table: targets that are numbers, such as counts, though they have few different values: without this, 3 to
    20 different whole numbers are classes."""
    learner: MultiLabelName = "joint"
    """Learn all targets (joint), the main one alone (main_only), or merge networks of both again and again (forkmerge).
    Only the losses of joint are weighted by --method. The others are models of scikit-learn, without a network."""
    labels: float | None = 50.0
    """Labels of the main target: a number, a share below 1, or none for all of them. For a table, all that are used
    for learning and for choosing a network; else training labels."""
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
    freeze: int = 0
    """Layers of the trunk that keep their weights, from the first on: up to 8 of efficientnet-lite0."""
    cache_features: bool = False
    """With --freeze: compute the outputs of the frozen layers once per image and train on them, without
    augmentation."""
    dropout: float = 0.0
    """For mlp: share of features dropped at random in training."""
    pieces: int = 0
    """For mlp: pieces in which the network also sees each number; see arml.lab.data.piecewise."""
    select: Literal["last", "error", "average_precision", "auc"] = "average_precision"
    """Measure that chooses the network on validation examples; numeric targets have only the error. last: the network
    of the last step, which needs no validation labels. For a table, other choices hold back a fifth of --labels."""

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

    def measure(self) -> str:
        """The measure named by ``select``; the error if the last network counts."""
        return "error" if self.select == "last" else self.select

    def overlap(self) -> float:
        """One fold of a table is tested, the others are not; other data sets count as if seeds drew new examples."""
        return 1 / (FOLDS - 1) if self.table else 0.0

    def score(self, metrics: Mapping[str, float]) -> float:
        """The measure named by ``select``; the error for targets that have no other, such as numbers."""
        return metrics["error"] if self.select not in metrics or self.select == "error" else -metrics[self.select]

    def protocol(self) -> str:
        """The best network on validation examples, by the measure that ``select`` names."""
        if self.select == "last":
            # Simple models fit to all labels; a network stops at its last step. Either is tested as it then is.
            return f"the model at the end of training is tested; {FOLDS} seeds in a row test every labelled row once"
        if self.select == "error":
            return super().protocol()
        measure = {"average_precision": "average precision", "auc": "AUC"}[self.select]
        return f"the network with the best {measure} on validation examples is tested, once (numbers: the least error)"


@dataclass(frozen=True)
class Domains(Run):
    """One target domain with few labelled images, source domains as auxiliary tasks."""

    setting: ClassVar[str] = "dg"
    weighted: ClassVar[frozenset[str]] = weighted_learners("dg")
    added_later: ClassVar[Mapping[str, Any]] = {**Run.added_later, "freeze": 0, "cache_features": False}

    dataset: Literal["digits", "digits_misleading", "pacs", "pacs_misleading", "folders"] = "digits"
    """Domains to learn from. digits has one misleading source; in digits_misleading all sources mislead; pacs is read
    from the data folder, and pacs_misleading is made from it; folders are your own, see --folders."""
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
    freeze: int = 0
    """Layers of the trunk that keep their weights, from the first on: up to 8 of efficientnet-lite0."""
    cache_features: bool = False
    """With --freeze: compute the outputs of the frozen layers once per image and train on them, without
    augmentation."""
    select: Literal["last", "sources"] = "last"
    """Which network is tested: the last one, or the best on the sources' validation images."""
    aux_scale: float = 1.0
    """Factor on the mean of the sources' losses: each loss is first divided by the number of sources."""

    def __post_init__(self) -> None:
        """Refuses a negative number of shots, too."""
        super().__post_init__()
        if self.shots != "all":
            check_at_least(self, 0, ["shots"])

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


@dataclass(frozen=True)
class Suite(Run):
    """A world of the suite: one main task with few labels, auxiliary tasks of which it is known whether they help."""

    setting: ClassVar[str] = "suite"
    weighted: ClassVar[frozenset[str]] = weighted_learners("suite")

    world: str = ""
    """Name of the world."""
    tier: str = ""
    """Filled in: dev, test, or own for your own data."""
    kind: str = ""
    """Filled in: what the world is about."""
    helpful: tuple[str, ...] = ()
    """Filled in: the auxiliary tasks that help."""
    learner: SuiteName = "joint"
    """All auxiliary tasks (joint), those that help with equal weights (oracle), or none (main_only)."""
    labels: int = 20
    """Labelled examples of the main task."""
    batch_main: int = 20
    """Labelled examples of the main task per step."""
    batch_aux: int = 20
    """Examples of each auxiliary task per step."""
    table: str = ""
    """Your own CSV or Parquet file, which worlds are made from."""
    folders: str = ""
    """Your own folder with <domain>/<class>/<image>, which worlds are made from."""
    main: str = ""
    """The main column of the table, or the target among the domains."""
    aux: tuple[str, ...] = ()
    """Columns of the table to use as auxiliary tasks."""
    data_digest: str = ""
    """Fingerprint of the table or folder, filled in: a changed file makes another run."""
    method_file: str = ""
    """A Python file with a method that the catalogue does not have."""
    method_digest: str = ""
    """Fingerprint of that file, filled in: a changed file makes another run."""

    def subject(self) -> Subject:
        """The world and its labels."""
        own = f"@{self.data_digest[:6]}" if self.data_digest else ""
        return Subject(self.setting, f"{self.world}{own}", "", self.labels)

    def line(self) -> Line:
        """Learner and method; a method from a file has the file's fingerprint."""
        method = self._method(self.learner)
        return Line(self.learner, f"{method}@{self.method_digest[:6]}" if self.method_digest else method)

    def reference(self) -> Line:
        """All auxiliary tasks, with equal weights."""
        return Line("joint", "uniform")

    def protocol(self) -> str:
        """The last network."""
        return "the network of the last step is tested, once"


def _describe_variant(left_out: tuple[str, ...]) -> str:
    return f"without {', '.join(left_out)}" if left_out else ""


RUN_TYPES: dict[str, type[Run]] = {kind.setting: kind for kind in (SemiSupervised, MultiLabel, Domains, Suite, OwnLoop)}
"""The kinds of run by the name of their setting in records and commands."""
