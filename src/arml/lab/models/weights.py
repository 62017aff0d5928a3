"""Loads pretrained weights from a file into a trunk."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

WRAPPERS = ("state_dict", "model", "network")
"""Keys under which training scripts, and this project's checkpoints, store the weights among other things."""
PREFIXES = ("module.", "trunk.", "backbone.")
"""Prefixes that wrappers add to the names of weights."""
CLASSIFIERS = ("fc.", "heads.")
"""Prefixes of layers after the trunk, which belong to the tasks they were trained on."""
MOST_NAMES = 5
"""The largest number of names of each kind in an error."""


def load_weights(trunk: nn.Module, path: Path) -> None:
    """Copies the weights and statistics in ``path`` into ``trunk``: all of them or, if they do not fit, none.

    The file holds a state dict, or a dictionary with one as ``state_dict``, ``model`` or ``network``, written by
    ``torch.save``. Prefixes that wrappers add (``module.``, ``trunk.``, ``backbone.``) are removed, a classifier after
    the trunk (``fc``, ``heads``) is left out, and BatchNorm's counters may be missing, as they are from old files. Only
    tensors and plain values are read: a file cannot run code.

    Raises:
        ValueError: The file cannot be read or does not fit. The error lists what is missing, what is unexpected and
            what has another shape.
    """
    wanted = trunk.state_dict()
    found = _rename(read_weights(path), wanted, path)
    missing = [name for name in wanted if name not in found and not name.endswith("num_batches_tracked")]
    unexpected = [name for name in found if name not in wanted]
    misshapen = [
        f"{name} ({_shape(found[name])} in the file, {_shape(wanted[name])} in the network)"
        for name in wanted
        if name in found and found[name].shape != wanted[name].shape
    ]
    if missing or unexpected or misshapen:
        raise ValueError(
            f"{path}: the weights do not fit the network. Missing: {_list_some(missing)}. Not expected: "
            f"{_list_some(unexpected)}. Of another shape: {_list_some(misshapen)}. Choose the network that the file "
            "was made with, or another file."
        )
    odd = [name for name in found if not _is_finite(found[name])]
    if odd:
        raise ValueError(
            f"{path}: the weights should be finite real numbers. Other values are in: {_list_some(odd)}. Use a file "
            "from before the training diverged."
        )
    trunk.load_state_dict(found, strict=False)  # counters may be missing


def read_weights(path: Path) -> Mapping[str, Tensor]:
    """The state dict in the file, with the names in the file. Only tensors and plain values are read."""
    if not path.is_file():
        raise ValueError(f"{path}: expected a file with weights, found no such file. Check the path.")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch reads any bytes as instructions, so they can fail in any way
        raise _no_weights_error(path, f"a damaged or different file ({_first_line(error)})") from error
    for wrapper in WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(wrapper), Mapping):
            content = content[wrapper]
    if not isinstance(content, Mapping):
        raise _no_weights_error(path, f"an object of type {type(content).__name__}")
    others = [str(name) for name, value in content.items() if not isinstance(value, Tensor)]
    if others or not content:
        raise _no_weights_error(
            path, f"entries that are no tensors: {_list_some(others)}" if others else "nothing in it"
        )
    return content


def _rename(content: Mapping[str, Tensor], wanted: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """Removes prefixes and classifiers that ``wanted`` does not have."""
    found: dict[str, Tensor] = {}
    for name, value in content.items():
        short = _strip_prefixes(str(name), wanted)
        if short in found:
            raise ValueError(
                f"{path}: two entries are called {short} once prefixes are taken off, one of them {name}. "
                "Save a file with the weights of one network only."
            )
        if short in wanted or not short.startswith(CLASSIFIERS):
            found[short] = value
    return found


def _strip_prefixes(name: str, wanted: Mapping[str, Tensor]) -> str:
    while name not in wanted and name.startswith(PREFIXES):
        name = name.split(".", 1)[1]
    return name


def _is_finite(value: Tensor) -> bool:
    return not value.is_complex() and not value.is_quantized and bool(torch.isfinite(value.to_dense()).all())


def _list_some(names: Sequence[str]) -> str:
    """The number of names, and the first few of them."""
    more = ", ..." if len(names) > MOST_NAMES else ""
    return f"{len(names)}: {', '.join(names[:MOST_NAMES])}{more}" if names else "none"


def _shape(x: Tensor) -> str:
    return str(list(x.shape))


def _no_weights_error(path: Path, found: str) -> ValueError:
    return ValueError(
        f"{path}: expected weights as `torch.save(network.state_dict(), path)` writes them, found {found}. "
        "Load the file where it was made and save its state dict alone."
    )


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
