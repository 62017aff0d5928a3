"""Wide residual networks: counts, and the forward pass written out."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from arml.lab.models import Network, wrn


def parameters(network):
    return sum(p.numel() for p in network.parameters())


def test_wrn_28_2_has_the_published_number_of_parameters():
    trunk = wrn(28, 2)
    assert trunk.num_features == 128
    assert parameters(Network(trunk, 128, {"class": 10})) == 1_467_610
    assert parameters(Network(trunk, 128, {"class": 10, "rotation": 4})) == 1_467_610 + 516


def normalised(layer, x):
    """Batch statistics, then leaky ReLU."""
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), correction=0, keepdim=True)
    scaled = (x - mean) / (variance + 1e-3).sqrt() * layer.weight[:, None, None] + layer.bias[:, None, None]
    return torch.where(scaled > 0, scaled, 0.1 * scaled)


@pytest.mark.parametrize("width", [1, 2])
def test_the_forward_pass_written_out(width):
    """WRN-10: one block in each group, the first of which activates its shortcut."""
    trunk = wrn(10, width, 3).double()
    x = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    features = F.conv2d(x, trunk.stem.weight, padding=1)
    for group, stride in ((trunk.group1, 1), (trunk.group2, 2), (trunk.group3, 2)):
        (block,) = group
        first, norm, _, second = block.residual
        activated = normalised(block.before[0], features)
        inner = normalised(norm, F.conv2d(activated, first.weight, stride=stride, padding=1))
        shortcut = activated if group is trunk.group1 else features
        if (width, stride) != (1, 1):  # only WRN-10-1's first block keeps its shape
            shortcut = F.conv2d(shortcut, block.shortcut.weight, stride=stride)
        features = shortcut + F.conv2d(inner, second.weight, padding=1)
    assert_close(trunk(x), normalised(trunk.norm, features).mean((2, 3)))


def test_only_the_very_first_block_activates_its_shortcut():
    trunk = wrn(28, 1)
    blocks = [block for group in (trunk.group1, trunk.group2, trunk.group3) for block in group]
    assert [block.activate_shortcut for block in blocks] == [True] + 11 * [False]


def test_convolutions_start_with_the_recipe_s_spread():
    trunk = wrn(10, 4)
    for layer in (trunk.stem, trunk.group3[0].residual[0], trunk.group3[0].shortcut):
        area = layer.kernel_size[0] ** 2
        assert_close(layer.weight.std(), torch.tensor((2 / (area * layer.out_channels)) ** 0.5), rtol=0.1, atol=0)


def test_batch_norm_has_the_given_settings_and_follows_slowly_by_default():
    norm = wrn(10, 1, bn_momentum=0.1, bn_eps=1e-5).group2[0].before[0]
    assert (norm.momentum, norm.eps) == (0.1, 1e-5)
    assert (wrn(10, 1).norm.momentum, wrn(10, 1).norm.eps) == (0.001, 1e-3)


@pytest.mark.parametrize("depth", [4, 12, 27])
def test_impossible_depths_are_refused(depth):
    with pytest.raises(ValueError, match=rf"6 n \+ 4. Got {depth}"):
        wrn(depth, 2)


def test_impossible_widths_are_refused():
    with pytest.raises(ValueError, match="Got 0"):
        wrn(10, 0)


def test_channels_lie_next_to_each_other_in_memory_which_changes_nothing_but_time():
    trunk, x = wrn(10, 1), torch.randn(2, 3, 8, 8)
    seen = []
    trunk.group2.register_forward_hook(lambda _, __, out: seen.append(out))
    features = trunk(x)
    assert seen[0].is_contiguous(memory_format=torch.channels_last)
    plain = wrn(10, 1)
    plain.load_state_dict(trunk.state_dict())
    assert plain.stem.weight.is_contiguous(memory_format=torch.channels_last), "files of other networks keep it"
    assert_close(plain.to(memory_format=torch.contiguous_format)(x), features, rtol=1e-4, atol=1e-5)
