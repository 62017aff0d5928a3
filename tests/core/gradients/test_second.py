"""The second backward pass without needless products: the same numbers, fewer operations, nothing left behind."""

from collections import Counter

import pytest
import torch
from torch import nn
from torch.autograd import grad
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from arml.gradients import alignment, double_backward, pairwise
from arml.gradients.second import skip_needless_products

LAYERS = {
    "stride": (lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1), 2),
    "dilation": (lambda: nn.Conv2d(4, 6, 3, dilation=2, bias=False), 2),
    "groups": (lambda: nn.Conv2d(4, 6, 3, groups=2), 2),
    "transposed": (lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), 2),
    "one dimension": (lambda: nn.Conv1d(4, 6, 3, padding=1), 1),
    "three dimensions": (lambda: nn.Conv3d(4, 6, 2), 3),
    "BatchNorm": (lambda: nn.BatchNorm2d(4), 2),
    "BatchNorm by running statistics": (lambda: nn.BatchNorm2d(4).eval(), 2),
    "BatchNorm without weights": (lambda: nn.BatchNorm2d(4, affine=False), 2),
    "BatchNorm without statistics": (lambda: nn.BatchNorm2d(4, track_running_stats=False), 2),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), 2),
}
MIX = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}


def trunk_with(layer, dimensions):
    """A layer whose input depends on a parameter, and whose output goes through something curved."""
    first = MIX[dimensions](2, 4, 1)
    return nn.Sequential(first, nn.Tanh(), layer, nn.Tanh(), nn.Flatten()).double()


def losses_of(trunk, dimensions):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(3, 2, *[6] * dimensions, dtype=torch.float64, generator=generator)
    features = trunk(x)
    heads = torch.randn(5, features.shape[1], dtype=torch.float64, generator=generator)
    return [(features @ head).square().mean() for head in heads]


@pytest.mark.parametrize("name", LAYERS)
def test_layer_by_layer_as_by_separate_backwards(name):
    make, dimensions = LAYERS[name]
    trunk = trunk_with(make(), dimensions)
    losses = losses_of(trunk, dimensions)
    directions = torch.randn(2, 5, dtype=torch.float64)
    expected = alignment(losses, trunk, directions, engine=pairwise)
    assert_close(alignment(losses, trunk, directions, engine=double_backward), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("frozen", ["weight", "bias"])
@pytest.mark.parametrize("name", ["stride", "BatchNorm"])
def test_partly_frozen_layers(name, frozen):
    make, dimensions = LAYERS[name]
    layer = make()
    getattr(layer, frozen).requires_grad_(False)
    trunk = trunk_with(layer, dimensions)
    losses = losses_of(trunk, dimensions)
    directions = torch.randn(1, 5, dtype=torch.float64)
    expected = alignment(losses, trunk, directions, engine=pairwise)
    assert_close(alignment(losses, trunk, directions, engine=double_backward), expected, rtol=1e-9, atol=1e-9)


def test_a_layer_used_twice():
    shared = nn.Conv2d(4, 4, 3, padding=1)
    trunk = nn.Sequential(nn.Conv2d(2, 4, 1), shared, nn.Tanh(), shared, nn.Flatten()).double()
    losses = losses_of(trunk, 2)
    directions = torch.randn(1, 5, dtype=torch.float64)
    expected = alignment(losses, trunk, directions, engine=pairwise)
    assert_close(alignment(losses, trunk, directions, engine=double_backward), expected, rtol=1e-9, atol=1e-9)


class Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.counts[func.overloadpacket._qualified_op_name] += 1
        return func(*args, **(kwargs or {}))


def keep_graph(trunk, losses):
    w = torch.ones(5, dtype=torch.float64, requires_grad=True)
    u = grad((w * torch.stack(losses)).sum(), list(trunk.parameters()), create_graph=True)
    return w, u, [part.detach() for part in u]


def test_products_are_left_out():
    """This saves one of the second convolution's four products, and most of BatchNorm's many small operations."""
    trunk = nn.Sequential(nn.Conv2d(2, 4, 1), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Flatten()).double()
    w, u, r = keep_graph(trunk, losses_of(trunk, 2))
    with Calls() as whole:
        expected = grad(u, w, grad_outputs=r, retain_graph=True)
    with Calls() as spared, skip_needless_products(u):
        found = grad(u, w, grad_outputs=r, retain_graph=True)
    assert_close(found, expected, rtol=1e-12, atol=1e-12)
    # the first layer's input is data: W's tangent and its needless product; the second has its input's tangent, too
    assert whole.counts["aten::convolution"] == 2 + 4
    assert spared.counts["aten::convolution"] == 2 + 3
    assert spared.counts["aten::mul"] < whole.counts["aten::mul"] - 10
    assert spared.counts["aten::native_batch_norm_backward"] == 1


def test_nothing_stays_behind():
    """The same graph, differentiated by its owner with respect to the weights afterwards, as for a gradient penalty."""
    trunk = nn.Sequential(nn.Conv2d(2, 4, 1), nn.Tanh(), nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4), nn.Flatten()).double()
    w, u, r = keep_graph(trunk, losses_of(trunk, 2))
    parameters = list(trunk.parameters())
    expected = grad(sum(part.square().sum() for part in u), parameters, retain_graph=True, materialize_grads=True)
    with skip_needless_products(u):
        grad(u, w, grad_outputs=r, retain_graph=True)
    with pytest.raises(RuntimeError), skip_needless_products(u):
        grad(u, w, grad_outputs=r[:1])  # also where the pass fails
    found = grad(sum(part.square().sum() for part in u), parameters, retain_graph=True, materialize_grads=True)
    assert_close(found, expected, rtol=0, atol=0)
