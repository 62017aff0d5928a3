"""JiGen: what is shuffled, what is classified, and how the losses are put together."""

import math

import pytest
import torch
from torch import nn, tensor
from torch.nn import functional as F
from torch.testing import assert_close

from arml import Reweighter, Uniform
from arml.lab.data.augment import Augment
from arml.lab.data.batches import DomainBatch
from arml.lab.learners.jigen import JiGen, JiGenSettings
from arml.lab.learners.joint_training import leave_out_target
from arml.lab.models import Network, small

STILL = Augment(flip=False, shift=0, noise=0.0)
SOURCES = ("photo", "sketch")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def a_batch(shots=4, images=40, side=6):
    def drawn(count):
        return torch.randn(count, 1, side, side), torch.arange(count) % 2

    return DomainBatch(*drawn(shots), {name: drawn(images) for name in SOURCES})


def jigen(sources=SOURCES, **settings):
    return JiGen(JiGenSettings(**{"num_permutations": 3, **settings}), sources, STILL)


class Watched(nn.Module):
    """A trunk that keeps the images it was shown: those of the sources, and then those of the target."""

    def __init__(self):
        super().__init__()
        self.passes = []

    def forward(self, x):
        self.passes.append(x)
        return x.flatten(1)

    @property
    def seen(self):
        """The target's images, then those of the sources."""
        return torch.cat(self.passes[::-1])


def watched(learner, num_features=36):
    return Network(Watched(), num_features, {"class": 2, **learner.heads})


def test_sources_are_shuffled_and_the_target_is_not():
    learner, batch = jigen(bias=0.5), a_batch()
    network = watched(learner)
    learner.losses(network, batch, 0, seeded())
    target, *sources = network.trunk.seen.split([4, 40, 40])
    assert_close(target, batch.x, rtol=0, atol=0)
    for seen, (given, _) in zip(sources, batch.sources.values(), strict=True):
        changed = (seen != given).flatten(1).any(1).float().mean()
        assert 0.2 < changed < 0.55  # 3/8 is expected
        assert_close(seen.flatten(1).sort().values, given.flatten(1).sort().values, rtol=0, atol=0)


def test_the_bias_of_the_paper_shuffles_one_image_in_ten():
    learner, batch = jigen(num_permutations=30), a_batch(images=2000, side=3)
    network = watched(learner, num_features=9)
    learner.losses(network, batch, 0, seeded())
    given = torch.cat([batch.x, *(x for x, _ in batch.sources.values())])
    changed = (network.trunk.seen != given).flatten(1).any(1)[4:].float().mean()
    assert_close(float(changed), 0.1 * 30 / 31, rtol=0.15, atol=0)


def by_hand(**settings):
    """All images shuffled but the target's; the class head says 1/2 to all, the puzzle's 1/4 to all four orders."""
    learner, batch = jigen(**{"bias": 0.0, **settings}), a_batch()
    network = watched(learner).double()
    for head in network.heads.values():
        nn.init.zeros_(head.weight)
    batch = batch._replace(x=batch.x.double(), sources={k: (x.double(), y) for k, (x, y) in batch.sources.items()})
    main, aux = learner.losses(network, batch, 0, seeded())
    return main.item(), {name: loss.item() for name, loss in aux.items()}


def test_the_losses_by_hand():
    ln2, ln4 = math.log(2), math.log(4)
    main, aux = by_hand(weight=0.5)
    assert_close((main, aux), (ln2, {"photo": ln2 + ln4 / 2, "sketch": ln2 + ln4 / 2}))
    main, aux = by_hand(weight=0.5, jigsaw_as_task=True)
    assert_close((main, aux), (ln2, {"photo": ln2, "sketch": ln2, "jigsaw": ln4}))


def test_only_ordered_images_can_be_classified():
    """The mean is over images that reached the trunk as they were given."""
    learner, batch = jigen(bias=0.5, weight=0.0, ordered_only=True), a_batch()
    network = watched(learner)
    main, aux = learner.losses(network, batch, 0, seeded())
    logits = network.head("class", network.trunk.seen.flatten(1))
    given = torch.cat([batch.x, *(x for x, _ in batch.sources.values())])
    labels = torch.cat([batch.y, *(y for _, y in batch.sources.values())])
    ordered = (network.trunk.seen == given).flatten(1).all(1)
    for name, rows in {"photo": slice(4, 44), "sketch": slice(44, 84)}.items():
        kept = ordered[rows]
        assert 0 < int(kept.sum()) < 40
        assert_close(aux[name], F.cross_entropy(logits[rows][kept], labels[rows][kept]))
    assert_close(main, F.cross_entropy(logits[:4], batch.y))


def test_a_source_without_ordered_images_has_no_class_loss():
    """One image for each source, which three draws in four shuffle: the loss is then 0, and never NaN."""
    learner, batch = jigen(bias=0.0, weight=0.0, ordered_only=True), a_batch(images=1)
    network = watched(learner)
    drawn = [learner.losses(network, batch, 0, seeded(seed))[1]["photo"].item() for seed in range(40)]
    assert 0.6 < sum(loss == 0 for loss in drawn) / 40 < 0.9
    assert len(set(drawn)) == 2


@pytest.mark.parametrize("as_task", [False, True])
def test_equal_weights_are_the_objective_of_the_paper(as_task):
    learner, batch = jigen(bias=0.5, weight=0.7, jigsaw_as_task=as_task), a_batch()
    network = learner.network(small(num_features=8), 2)
    seen, orders = [], []
    network.trunk.register_forward_hook(lambda _, inputs, features: seen.append(features))
    network.heads["jigsaw"].register_forward_hook(lambda _, inputs, logits: orders.append(logits))
    batch = batch._replace(x=batch.x + 5)  # far from the sources, whose features must not notice
    main, aux = learner.losses(network, batch, 0, seeded())
    assert not learner.train_on_main
    reweighter = Reweighter(Uniform(), learner.tasks, network.trunk, aux_scale=1 / 2, train_on_main=False)

    labels = torch.cat([y for _, y in batch.sources.values()])
    order = learner._orders(leave_out_target(batch), seeded())
    expected = F.cross_entropy(network.head("class", seen[0]), labels) + 0.7 * F.cross_entropy(orders[0], order)
    assert_close(reweighter(main, aux), expected)


def test_heads_and_tasks():
    assert jigen().heads == {"jigsaw": 4}
    assert jigen().tasks == SOURCES
    assert jigen(jigsaw_as_task=True).tasks == (*SOURCES, "jigsaw")
    assert JiGen(JiGenSettings(), SOURCES, STILL).heads == {"jigsaw": 31}


def test_only_sources_train_the_head_of_the_puzzles():
    learner, batch = jigen(bias=0.5), a_batch()
    network = learner.network(small(num_features=8), 2)
    main, aux = learner.losses(network, batch, 0, seeded())
    main.backward(retain_graph=True)
    assert network.heads["jigsaw"].weight.grad is None
    sum(aux.values()).backward()
    assert bool(network.heads["jigsaw"].weight.grad.any())


@pytest.mark.parametrize("side", [8, 10])
def test_images_of_any_size_are_cropped_to_the_grid(side):
    learner, batch = jigen(bias=1.0), a_batch(side=side)
    network = watched(learner, num_features=(side // 3 * 3) ** 2)
    learner.losses(network, batch, 0, seeded())
    cut = side // 3 * 3
    edge = (side - cut) // 2
    assert_close(network.trunk.seen[:4], batch.x[:, :, edge : edge + cut, edge : edge + cut], rtol=0, atol=0)


def test_errors():
    with pytest.raises(ValueError, match=r"`bias`.*0 to 1.*1.5"):
        JiGenSettings(bias=1.5)
    with pytest.raises(ValueError, match=r"`grey`.*-0.1"):
        JiGenSettings(grey=-0.1)
    with pytest.raises(ValueError, match=r"`weight`.*-1"):
        JiGenSettings(weight=-1)
    with pytest.raises(ValueError, match=r"called 'jigsaw'.*photo, jigsaw"):
        jigen(sources=("photo", "jigsaw"))


def test_tiles_of_colour_images_turn_grey():
    learner = jigen(bias=1.0, grey=1.0)
    colours = tensor([1.0, 0.0, 0.0]).reshape(1, 3, 1, 1).expand(2, 3, 3, 3)
    batch = DomainBatch(colours, tensor([0, 1]), {name: (colours, tensor([0, 1])) for name in SOURCES})
    network = watched(learner, num_features=27)
    learner.losses(network, batch, 0, seeded())
    assert_close(network.trunk.seen, torch.full((6, 3, 3, 3), 0.299))
