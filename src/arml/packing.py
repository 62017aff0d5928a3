"""The state of a Reweighter as one tensor of bytes, and back: every tool that saves tensors can save it.

The bytes are the length of a header (8 bytes, little-endian), the header in JSON, the numbers of all tensors one after
the other, and zeros. The header is ``{"format": 2, "state": ...}``, where ``{"$tensor": [dtype, shape, offset]}``
stands for a tensor. Bytes are not cast by ``model.half()``, and are the same on every device.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

FORMAT = 2
"""The format that is written. Format 1 was a plain dictionary, without a number."""
State: TypeAlias = dict[str, Any]
"""Nested dictionaries with names as keys, lists, text, numbers, ``None`` and tensors."""
_MARK = "$tensor"


def pack(state: State, *, room: int = 0) -> Tensor:
    """``state`` as a tensor of bytes, filled up with zeros to ``room`` bytes if it is shorter.

    >>> unpack(pack({"calls": 3, "weights": torch.tensor([1.0, 0.5])}))
    {'calls': 3, 'weights': tensor([1.0000, 0.5000])}
    """
    parts: list[Tensor] = []
    header = json.dumps({"format": FORMAT, "state": _encode(state, parts)}).encode()
    text = bytearray(len(header).to_bytes(8, "little") + header)
    content = torch.cat([torch.frombuffer(text, dtype=torch.uint8), *parts])
    packed = torch.zeros(max(room, len(content)), dtype=torch.uint8, device="cpu")
    packed[: len(content)] = content
    return packed


def unpack(packed: Tensor) -> State:
    """The state that :func:`pack` was given."""
    if packed.dtype != torch.uint8 or packed.ndim != 1 or packed.device.type == "meta":
        raise ValueError(
            "The state of a Reweighter should be a vector of bytes (torch.uint8). Got "
            f"{packed.dtype} of shape {tuple(packed.shape)} on {packed.device}. Load it without a cast."
        )
    data = packed.detach().cpu()
    end = 8 + int.from_bytes(bytes(data[:8].tolist()), "little")
    try:
        header = json.loads(bytes(data[8:end].tolist()))
        number, state = header["format"], header["state"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("These bytes are not the state of a Reweighter, or a part of them is missing.") from error
    if number > FORMAT:
        raise ValueError(
            f"The checkpoint has format {number}; this version of arml reads formats up to {FORMAT}. "
            "Update arml to the version that wrote the checkpoint."
        )
    decoded: State = _decode(state, data[end:])
    return decoded


def _encode(node: Any, parts: list[Tensor]) -> Any:
    """``node`` as JSON knows it; the bytes of its tensors are added to ``parts``."""
    if isinstance(node, Tensor):
        offset = sum(map(len, parts))
        parts.append(node.detach().cpu().contiguous().reshape(-1).view(torch.uint8))
        return {_MARK: [str(node.dtype).removeprefix("torch."), list(node.shape), offset]}
    if isinstance(node, Mapping):
        if not all(isinstance(name, str) and name != _MARK for name in node):
            raise TypeError(f"A state should have names as keys, none of them {_MARK!r}. Got {list(node)}.")
        return {name: _encode(part, parts) for name, part in node.items()}
    if isinstance(node, list | tuple):
        return [_encode(part, parts) for part in node]
    if node is None or isinstance(node, str | int | float):
        return node
    raise TypeError(f"A state may hold text, numbers, tensors, lists and dictionaries. Got {type(node).__name__}.")


def _decode(node: Any, data: Tensor) -> Any:
    if isinstance(node, list):
        return [_decode(part, data) for part in node]
    if not isinstance(node, dict):
        return node
    if _MARK not in node:
        return {name: _decode(part, data) for name, part in node.items()}
    name, shape, offset = node[_MARK]
    dtype: torch.dtype = getattr(torch, name)
    size = torch.Size(shape).numel() * dtype.itemsize
    # A copy begins at its own first byte: numbers of several bytes cannot be read from any other place.
    return data[offset : offset + size].clone().view(dtype).reshape(shape)
