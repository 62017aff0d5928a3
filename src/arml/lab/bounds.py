"""How large the numbers of a run may be: beyond these it is a slip of the hand that would take all memory, or years."""

from collections.abc import Mapping
from typing import Any

MOST_STEPS = 10**8
MOST_IN_BATCH = 2**16
MOST_FEATURES, MOST_LAYERS = 2**14, 1000
"""Features of a layer and layers of a network."""
MOST_RATE = 10**6
LARGEST = {
    "seed": 2**63 - 1,
    "image_size": 1024,
    **dict.fromkeys(("momentum", "bn_momentum", "lr_drop"), 1),
    **dict.fromkeys(("lr", "weight_lr", "weight_decay", "temperature", "aux_scale"), MOST_RATE),
    **dict.fromkeys(("steps", "every", "window", "evaluate_every", "record_every", "checkpoint_every"), MOST_STEPS),
}


def check_at_most(fields: Mapping[str, Any]) -> None:
    """Raises an error for numbers of a run that are larger than any run can have.

    >>> check_at_most({"batch_main": 10**9})
    Traceback (most recent call last):
    ValueError: `batch_main` should be at most 65536. Got 1000000000.
    """
    for name, value in fields.items():
        most = MOST_IN_BATCH if "batch" in name else LARGEST.get(name)
        if most is not None and value is not None and value > most:
            raise ValueError(f"`{name}` should be at most {most}. Got {value!r}.")


def check_network(name: str, *, features: int, layers: int) -> None:
    """Raises an error for networks that no memory holds."""
    if features > MOST_FEATURES or layers > MOST_LAYERS:
        raise ValueError(
            f"{name!r} is too large: at most {MOST_FEATURES} features per layer and {MOST_LAYERS} layers are allowed."
        )
