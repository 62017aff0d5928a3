"""A pass that is normalised by the statistics of another one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from arml.lab.models.network import promote_to_float32


class Moments(NamedTuple):
    """Mean and variance of every channel, with their graph."""

    mean: Tensor
    variance: Tensor


Statistics: TypeAlias = dict[_BatchNorm, Moments]
"""The moments by which every BatchNorm of a network normalised a pass."""


@contextmanager
def watch_statistics(network: nn.Module, *, needed: bool = True) -> Iterator[Statistics]:
    """Collects the statistics of the pass inside, if they are needed; none for networks without BatchNorm."""
    found: Statistics = {}

    def see(layer: _BatchNorm, inputs: tuple[Tensor, ...]) -> None:
        x = promote_to_float32(inputs[0])
        places = [place for place in range(x.ndim) if place != 1]
        variance, mean = torch.var_mean(x, dim=places, correction=0)
        found[layer] = Moments(mean, variance)

    with ExitStack() as hooks:
        for layer in _layers(network) if needed else ():
            hooks.enter_context(layer.register_forward_pre_hook(see))
        yield found


@contextmanager
def normalise_by(statistics: Statistics) -> Iterator[None]:
    r"""Normalises the pass inside by ``statistics`` of an earlier one: :math:`w (x - \mu) / \sqrt{v + \epsilon} + b`.

    As in the test, no image of the pass changes what the others become, and running statistics stay as they are. The
    moments :math:`\mu` and v are those of the present parameters, so that gradients reach the earlier pass, too.
    """

    def normalise(layer: _BatchNorm, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        mean, variance = statistics[layer]
        scale = layer.weight / (variance + layer.eps).sqrt()
        shift = layer.bias - mean * scale
        shape = (1, -1, *[1] * (output.ndim - 2))
        normalised: Tensor = inputs[0] * scale.view(shape) + shift.view(shape)
        return normalised.to(output.dtype)

    training = {layer: layer.training for layer in statistics}
    with ExitStack() as hooks:
        for layer in statistics:
            hooks.enter_context(layer.register_forward_hook(normalise))
            layer.training = False
        try:
            yield
        finally:
            for layer, before in training.items():
                layer.training = before


def _layers(network: nn.Module) -> list[_BatchNorm]:
    return [layer for layer in network.modules() if isinstance(layer, _BatchNorm)]
