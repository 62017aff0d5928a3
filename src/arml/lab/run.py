"""What a run is: plain data that can be hashed, recorded and repeated."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

LearnerName: TypeAlias = Literal["supervised", "pi_model", "mean_teacher", "vat", "vat_entmin", "pseudo_label", "s4l"]
MethodName: TypeAlias = Literal[
    "uniform",
    "adaloss",
    "gradnorm",
    "cosine_sim",
    "ol_aux",
    "arml",
    "arml_full",
    "gated_arml",
    "grid-0",
    "grid-0.5",
    "grid-1",
    "grid-1.5",
    "grid-2",
]
"""Names that the command line turns into methods."""


@dataclass(frozen=True)
class Run:
    """One run of semi-supervised learning. The command line is made from these fields."""

    dataset: Literal["digits", "mnist5k", "cifar10", "svhn"] = "digits"
    """Images to learn from: digits and mnist5k are embedded; cifar10 and svhn are read from the data folder."""
    learner: LearnerName = "s4l"
    """What is learned from unlabelled images: nothing (supervised), rotation and exemplar (s4l), or consistency."""
    method: MethodName = "arml"
    """How auxiliary losses are weighed; arml_full has two stages, grid-A gives rotation A and exemplar 2 - A."""
    labels: int = 50
    """Labelled training images, balanced over classes."""
    seed: int = 0
    """Of split, initial network, batches and augmentation."""
    steps: int = 200
    """Training steps."""
    network: str = "small-32"
    """small-FEATURES such as small-32, or wrn-DEPTH-WIDTH such as wrn-28-2."""
    batch_labelled: int = 32
    """Labelled images in a step."""
    batch_unlabelled: int = 32
    """Unlabelled images in a step."""
    lr: float | None = 0.003
    """Step size of Adam; none: the learner's own, from its paper."""
    lr_drop_at: float = 0.8
    """Share of the steps after which the step size falls."""
    lr_drop: float = 0.2
    """Factor by which it falls."""
    weight_lr: float | None = None
    """Step size of the weights; none: the method's own default."""
    every: int = 5
    """Steps between two updates of the weights."""
    window: int = 2
    """For arml_full: updates in a window by which convergence is judged."""
    temperature: float = 1.0
    """For arml_full: of the Langevin noise."""
    aux_scale: float = 1.0
    """Factor on every auxiliary loss before anything else sees it."""
    labelled_in_pool: bool = True
    """Whether labelled images are also used as unlabelled ones."""
    bn_momentum: float = 0.1
    """How fast BatchNorm's running statistics follow."""
    evaluate_every: int = 50
    """Steps between two looks at the validation images."""
    record_every: int = 25
    """Steps between two recorded steps."""
    checkpoint_every: int = 100
    """Steps between two checkpoints."""

    def name(self) -> str:
        """The run's folder: readable, and unique by a hash of all fields."""
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:10]
        return f"{self.dataset}-{self.labels}-{self.learner}-{self.method}-{self.seed}-{digest}"

    @staticmethod
    def from_record(fields: dict[str, Any]) -> "Run":
        """The run that a record's first line describes."""
        return Run(**fields)


def is_done(folder: Path) -> bool:
    """Whether the run in ``folder`` has been completed."""
    return (folder / "done").exists()
