"""What a user may ask a session for. Nothing here loads torch."""

from dataclasses import dataclass
from typing import Literal

KindName = Literal["mlp", "wrn", "resnet", "transformer", "flash"]
PartName = Literal["schedule", "recommended", "phases", "scaling", "processes", "lab"]


@dataclass(frozen=True)
class Request:
    """What to measure, as far as it was asked for."""

    kinds: tuple[KindName, ...] | None = None
    """Networks: a multilayer perceptron, WRN-28-2, ResNet18, a small transformer, the same with flash attention.
    All of them unless given; with --quick, all but WRN-28-2."""
    num_aux: tuple[int, ...] | None = None
    """Numbers K of auxiliary tasks: 2 10 39 120 200 unless given; with --quick, 2 39."""
    repeats: int | None = None
    """The largest number of rounds of measurements: 15 unless given; with --quick, 2."""
    seconds: float = 240.0
    """Time for the rounds of one network. Rounds that do not fit are left out, down to three."""
    threads: int = 1
    """Threads of torch. With one thread, the clock counts this process only, so that others hardly affect it."""
    device: str = "cpu"
    """Where to measure: cpu or cuda."""
    batch: int | None = None
    """Inputs per batch; unless given, each network has its own number."""
    parts: tuple[PartName, ...] | None = None
    """What else to measure: whole runs, the recommended method, where the time of a step goes, other batches and sizes,
    several processes, whole steps of arml train on one and two processes. The first five unless given; with --quick,
    the first two. lab alone measures no networks unless --kinds names them."""
    quick: bool = False
    """A look in less than a minute: small batches, few rounds, ARML only, nothing that gets slow with many tasks."""
