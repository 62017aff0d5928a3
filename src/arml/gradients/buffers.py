"""Lets modules be called again without a trace in their buffers, such as BatchNorm's statistics."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

Buffers: TypeAlias = dict[nn.Module, dict[str, Tensor | None]]
"""The buffers of modules before they were lent copies."""


@contextmanager
def lend_buffers(modules: Sequence[nn.Module] = (), *, watch: bool = True) -> Iterator[Buffers]:
    """Inside, ``modules``, and with ``watch`` all modules that are called, work on copies of their buffers.

    Writing old values back instead would make autograd refuse the caller's backward pass.
    """
    kept: Buffers = {}

    def lend(module: nn.Module, _: object = None) -> None:
        # torch.compile traces this hook, too: exchanging buffers would become part of the compiled code.
        if torch.compiler.is_compiling():
            return
        for part in module.modules():
            # A module that is called twice still gets the caller's buffers back, not the first copies.
            if part not in kept:
                kept[part] = dict(part._buffers)
                part._buffers.update({name: b.clone() for name, b in part._buffers.items() if b is not None})

    for module in modules:
        lend(module)
    handle = register_module_forward_pre_hook(lend) if watch else None
    try:
        yield kept
    finally:
        if handle is not None:
            handle.remove()
        for part, buffers in kept.items():
            part._buffers.update(buffers)
