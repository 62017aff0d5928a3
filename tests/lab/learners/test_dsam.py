"""D-SAM: which module learns from which image."""

import pytest
import torch
from torch.nn import functional as F
from torch.testing import assert_close

from arml.lab.data.augment import Augment
from arml.lab.data.batches import DomainBatch
from arml.lab.learners.dsam import DSAM, DSAMSettings
from arml.lab.models import Network, small
from arml.lab.models.resnet import block_outputs

STILL = Augment(flip=False, shift=0, noise=0.0)
SOURCES = ("photo", "sketch", "art")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def drawn(count):
    return torch.randn(count, 1, 8, 8), torch.arange(count) % 2


def a_batch(**counts):
    return DomainBatch(*drawn(3), {name: drawn(count) for name, count in counts.items()})


def test_every_image_goes_to_the_module_of_its_own_source_and_all_count_alike():
    learner = DSAM(DSAMSettings(dropout=0.0), SOURCES, STILL)
    network, batch = learner.network(small(num_features=8), 2), a_batch(photo=4, sketch=6, art=2)
    main, aux = learner.losses(network, batch, 0, seeded())
    x = torch.cat([x for x, _ in batch.sources.values()])
    blocks = block_outputs(network.trunk, x)
    own = torch.tensor([0] * 4 + [1] * 6 + [2] * 2)
    every = torch.stack([network.sources[name](blocks) for name in SOURCES], dim=1)
    labels = torch.cat([y for _, y in batch.sources.values()])
    assert_close(main, F.cross_entropy(every[torch.arange(12), own], labels))
    assert aux == {}


def test_a_module_learns_from_its_own_source_only():
    learner = DSAM(DSAMSettings(), SOURCES, STILL)
    network = learner.network(small(num_features=8), 2)
    learner.losses(network, a_batch(photo=4, art=4), 0, seeded())[0].backward()
    has_gradient = {name: network.sources[name].output.weight.grad is not None for name in SOURCES}
    assert has_gradient == {"photo": True, "sketch": False, "art": True}


def test_the_target_is_not_looked_at():
    learner = DSAM(DSAMSettings(), SOURCES, STILL)
    network, batch = learner.network(small(num_features=8), 2), a_batch(photo=4, sketch=4)
    with_target, other = (
        learner.losses(network, b, 0, seeded())[0] for b in (batch, batch._replace(x=batch.x[:0], y=batch.y[:0]))
    )
    assert_close(with_target, other, rtol=0, atol=0)
    assert learner.tasks == ()


def test_a_source_is_validated_by_the_modules_of_the_others():
    learner = DSAM(DSAMSettings(), SOURCES, STILL)
    network = learner.network(small(num_features=8), 2).eval()
    x = drawn(5)[0]
    each = {name: network.sources[name](block_outputs(network.trunk, x)) for name in SOURCES}
    assert_close(network(x), (each["photo"] + each["sketch"] + each["art"]) / 3)
    assert_close(learner.validation_network(network, "sketch")(x), (each["photo"] + each["art"]) / 2)


def test_dropout_is_for_training_and_comes_from_the_generator():
    learner = DSAM(DSAMSettings(), SOURCES, STILL)
    network, batch = learner.network(small(num_features=8), 2), a_batch(photo=4, sketch=4)
    once, again, other = (learner.losses(network, batch, 0, seeded(seed))[0] for seed in (1, 1, 2))
    assert_close(once, again, rtol=0, atol=0)
    assert not torch.equal(once, other)
    x = drawn(5)[0]
    assert_close(network(x), network(x), rtol=0, atol=0)


def test_errors():
    with pytest.raises(ValueError, match=r"two or more.*\['photo'\]"):
        DSAM(DSAMSettings(), ["photo"], STILL)
    learner = DSAM(DSAMSettings(), SOURCES, STILL)
    with pytest.raises(TypeError, match=r"Got Network.*DSAM.network"):
        learner.losses(Network(small(), 64, {"class": 2}), a_batch(photo=2), 0, seeded())
