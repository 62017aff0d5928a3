"""Aggregation modules: widths, the forward pass written out, and who is asked."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml.lab.models import Trunk, small, wrn
from arml.lab.models.aggregation import (
    AggregatedNetwork,
    AggregationModule,
    aggregated_network,
    block_shapes,
    drop_channels,
)
from arml.lab.models.resnet import block_outputs, resnet18

SOURCES = ("photo", "sketch", "art")


def widths(module):
    return [unit.join[0].out_channels for unit in module.units]


def test_the_widths_for_resnet18_are_those_of_the_authors():
    module = AggregationModule(block_shapes(resnet18()), 7)
    assert widths(module) == [128, 256, 256, 512, 512, 1024, 1024]
    inputs = [unit.join[0].in_channels for unit in module.units]
    assert inputs == [64 + 64, 128 + 128, 256 + 128, 256 + 256, 512 + 256, 512 + 512, 1024 + 512]
    halving = [isinstance(unit.halve, nn.Sequential) for unit in module.units]
    assert halving == [False, True, False, True, False, True, False]
    assert (module.output.in_features, module.output.out_features) == (1024, 7)


def test_other_trunks_follow_the_same_rule():
    assert widths(AggregationModule(block_shapes(small(num_features=64)), 7)) == [128, 128]
    assert widths(AggregationModule(block_shapes(wrn(10, 1)), 7)) == [64, 128]


def test_looking_at_a_trunk_leaves_it_as_it_was():
    trunk = resnet18(1)
    before = {name: value.clone() for name, value in trunk.state_dict().items()}
    assert block_shapes(trunk)[:3] == [(64, False), (64, False), (128, True)]
    assert_close(trunk.state_dict(), before, rtol=0, atol=0)
    assert trunk.training


def written_out(module, blocks):
    running = blocks[0]
    for unit, block in zip(module.units, blocks[1:], strict=True):
        if running.shape[2:] != block.shape[2:]:
            running = F.conv2d(running, unit.halve[0].weight, unit.halve[0].bias, stride=2).relu()
        running = F.conv2d(torch.cat([running, block], 1), unit.join[0].weight, unit.join[0].bias).relu()
    return running.mean((2, 3)) @ module.output.weight.T + module.output.bias


@pytest.mark.parametrize("size", [32, 33])
def test_the_forward_pass_written_out(size):
    trunk = resnet18().double().eval()
    module = AggregationModule(block_shapes(trunk), 7).double()
    blocks = block_outputs(trunk, torch.randn(2, 3, size, size, dtype=torch.float64))
    assert_close(module(blocks), written_out(module, blocks))


def three():
    network = aggregated_network(small(num_features=8), 2, SOURCES).double()
    for value, name in zip((3.0, 6.0, 30.0), SOURCES, strict=True):
        nn.init.zeros_(network.sources[name].output.weight)
        nn.init.constant_(network.sources[name].output.bias, value)
    return network, torch.randn(4, 1, 8, 8, dtype=torch.float64)


def test_the_answer_is_the_mean_of_the_modules():
    network, x = three()
    assert_close(network(x), torch.full((4, 2), 13.0, dtype=torch.float64))
    assert_close(network.head("art", network.features(x)), torch.full((4, 2), 30.0, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"no head 'clip'.*class, photo, sketch, art"):
        network.head("clip", network.features(x))


def test_without_a_source_its_module_is_not_asked():
    network, x = three()
    network.eval()
    others = network.leave_out("sketch")
    assert_close(others(x), torch.full((4, 2), 16.5, dtype=torch.float64))
    assert not others.training
    assert not network.training
    assert others.trunk is network.trunk, "nothing is copied"
    assert list(network.sources) == list(SOURCES)


def test_images_are_routed_to_their_modules():
    network, x = three()
    answers = network.route({"art": x[:1], "photo": x[1:]}, torch.Generator())
    assert {name: (len(part), part.mean().item()) for name, part in answers.items()} == {
        "art": (1, 30.0),
        "photo": (3, 3.0),
    }


def test_domains_may_have_any_name_and_copies_are_whole():
    """A deep copy asks its own modules."""
    network = aggregated_network(small(num_features=8), 2, ["photo.v2", "keys"])
    twin = deepcopy(network)
    nn.init.constant_(twin.sources["keys"].output.bias, 100)
    x = torch.randn(4, 1, 8, 8)
    assert bool((twin(x) > network(x) + 10).all())
    network.load_state_dict(twin.state_dict())
    assert_close(network(x), twin(x), rtol=0, atol=0)


def test_modules_start_apart():
    network = aggregated_network(small(num_features=8), 2, SOURCES)
    assert not torch.equal(network.sources["photo"].output.weight, network.sources["art"].output.weight)


@pytest.mark.parametrize("shape", [(200, 50, 2, 3), (200, 50)])
def test_whole_channels_are_dropped_and_the_mean_is_kept(shape):
    x = torch.ones(shape)
    dropped = drop_channels(x, 0.25, torch.Generator().manual_seed(0)).reshape(200, 50, -1)
    assert_close(dropped.unique(), torch.tensor([0.0, 4 / 3]))
    assert_close(float((dropped == 0).float().mean()), 0.25, rtol=0.05, atol=0)
    assert bool((dropped == dropped[:, :, :1]).all())
    assert_close(drop_channels(x, 0.25, None), x, rtol=0, atol=0)


def test_channels_are_dropped_in_every_unit_and_before_the_output():
    """Three calls with generator for two units, seen by what the generator has drawn: 4 x (96 + 192 + 128) numbers."""
    module = AggregationModule(block_shapes(small(num_features=64)), 7)
    assert [unit.join[0].in_channels for unit in module.units] == [96, 192]
    blocks = block_outputs(small(num_features=64), torch.randn(4, 1, 8, 8))
    used, twin = (torch.Generator().manual_seed(0) for _ in range(2))
    module(blocks, used)
    for channels in (96, 192, 128):
        torch.rand(4, channels, generator=twin)
    assert torch.equal(used.get_state(), twin.get_state())


def test_errors():
    with pytest.raises(ValueError, match=r"at least two blocks.*Got 1"):
        AggregationModule([(8, False)], 2)
    with pytest.raises(ValueError, match=r"`dropout`.*Got 1"):
        AggregationModule([(8, False), (8, True)], 2, dropout=1)
    with pytest.raises(ValueError, match="at least one source"):
        AggregatedNetwork(small(), {})
    quarter = Trunk(
        {"a": nn.Sequential(nn.Conv2d(1, 2, 1)), "b": nn.Sequential(nn.Conv2d(2, 2, 1, stride=4))}, 2, last_layer="b"
    )
    with pytest.raises(ValueError, match=r"keep or halve.*\[64, 16\]"):
        block_shapes(quarter)
