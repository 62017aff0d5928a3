"""FADA: its stages, who learns when, and from what."""

from copy import deepcopy

import pytest
import torch
from torch.nn import functional as F
from torch.optim import SGD, Adam
from torch.testing import assert_close

from arml import ARML, Reweighter
from arml.lab.data.augment import Augment
from arml.lab.data.batches import DomainBatch
from arml.lab.learners.fada import FADA, FADASettings
from arml.lab.learners.joint_training import DomainSettings, JointTraining
from arml.lab.models import small
from arml.lab.tasks.pairs import confusion, discrimination, pair_groups

STILL = Augment(flip=False, shift=0, noise=0.0)
SOURCES = ("photo", "sketch")
EXACT = {"rtol": 0, "atol": 0}


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def a_batch(shots=4):
    def drawn(count, shift=0.0):
        return torch.randn(count, 1, 8, 8) + shift, torch.arange(count) % 2

    return DomainBatch(*drawn(shots, 1.0), {name: drawn(10) for name in SOURCES})


def fada(steps=10, **settings):
    return FADA(FADASettings(**settings), SOURCES, STILL, steps)


def started(learner):
    network = learner.network(small(num_features=8), 2)
    learner.start(network)
    return network


def weights(module):
    return {name: p.detach().clone() for name, p in module.named_parameters()}


def moved(before, after):
    return any(not torch.equal(before[name], after[name]) for name in before)


def a_step(learner, network, optimizer, batch, step):
    main, aux = learner.losses(network, batch, step, seeded(step))
    optimizer.zero_grad()
    (sum(aux.values()) + (0 if main is None else main)).backward()
    optimizer.step()
    between = weights(network)
    learner.after_step(network)
    assert not moved(between, weights(network)), "the network rests while the discriminator learns"


def test_stage_one_is_the_sources_alone():
    """So a weighting method has nothing to go by and stays where it was."""
    learner, batch = fada(), a_batch()
    network = started(learner)
    reweighter = Reweighter(ARML(lr=1.0), SOURCES, network.trunk, every=1)
    for step in range(learner.adapts_from):
        main, aux = learner.losses(network, batch, step, seeded())
        assert main is None
        reweighter(main, aux)
    assert reweighter.weights == {"photo": 1, "sketch": 1}
    main, aux = learner.losses(network, batch, learner.adapts_from, seeded())
    reweighter(main, aux)
    assert reweighter.weights != {"photo": 1, "sketch": 1}


def test_the_discriminator_learns_after_stage_one_and_then_once_a_step():
    learner = fada(discriminator_updates=7)
    assert learner.adapts_from == 5
    network = started(learner)
    optimizer = SGD(network.parameters(), lr=0.1)
    updates = []
    for step in range(8):
        before = weights(learner.adversary.network)
        a_step(learner, network, optimizer, a_batch(), step)
        state = learner.adversary.optimizer.state
        updates.append(max((int(s["step"]) for s in state.values()), default=0))
        assert moved(before, weights(learner.adversary.network)) == (step >= 4)
    assert updates == [0, 0, 0, 0, 7, 8, 9, 10]


def test_the_discriminator_learns_the_groups_from_the_features_of_the_step():
    """The same Adam steps by hand, on the pairs that the generator draws."""
    learner, batch = fada(discriminator_updates=3), a_batch()
    network = started(learner)
    twin = deepcopy(learner.adversary.network)
    generator = seeded()
    labels = torch.cat([batch.y, *(y for _, y in batch.sources.values())])
    drawn = [pair_groups(labels, torch.arange(24) < 4, generator) for _ in range(3)]
    learner.losses(network, batch, 4, seeded())
    learner.after_step(network)
    features = network.features(torch.cat([batch.x, *(x for x, _ in batch.sources.values())])).detach()
    optimizer = Adam(twin.parameters(), lr=0.001)
    for pairs in drawn:
        optimizer.zero_grad()
        discrimination(twin, features, pairs).backward()
        optimizer.step()
    # Fused Adam rounds differently.
    assert_close(weights(learner.adversary.network), weights(twin), rtol=1e-6, atol=1e-8)


def test_stage_three_adds_confusion_to_the_target_only():
    learner, batch = fada(gamma=0.3), a_batch()
    network = started(learner)
    twin = deepcopy(network)
    main, aux = learner.losses(network, batch, 5, seeded())
    plain, sources = JointTraining(DomainSettings(), SOURCES, STILL).losses(twin, batch, 5, seeded())
    assert_close(aux, sources, **EXACT)
    labels = torch.cat([batch.y, *(y for _, y in batch.sources.values())])
    pairs = pair_groups(labels, torch.arange(24) < 4, seeded())
    features = network.features(torch.cat([batch.x, *(x for x, _ in batch.sources.values())]))
    assert_close(main, plain + 0.3 * confusion(learner.adversary.network, features, pairs))


def test_the_joint_loss_leaves_the_discriminator_alone():
    learner = fada()
    network = started(learner)
    main, aux = learner.losses(network, a_batch(), 5, seeded())
    (main + sum(aux.values())).backward()
    discriminator = learner.adversary.network
    assert all(p.grad is None and p.requires_grad for p in discriminator.parameters())
    assert all(p.grad is not None for p in network.parameters())


def test_confusion_brings_the_target_closer_to_the_sources():
    """Target images are brighter, which features show; less so with confusion, in small steps that D can follow."""

    def gap(gamma):
        torch.manual_seed(0)
        learner = fada(gamma=gamma, steps=160, discriminator_lr=0.01)
        network = started(learner)
        optimizer = SGD(network.parameters(), lr=0.001)
        for step in range(160):
            a_step(learner, network, optimizer, a_batch(), step)
        target, source = torch.randn(200, 1, 8, 8) + 1, torch.randn(200, 1, 8, 8)
        features = network.features(torch.cat([target, source])).detach()
        return float((features[:200].mean(0) - features[200:].mean(0)).norm() / features.std(0).norm())

    assert gap(0.2) < 0.7 * gap(0.0)


def test_a_batch_without_pairs_of_one_class_has_no_confusion():
    learner, batch = fada(), a_batch()
    network = started(learner)
    batch = batch._replace(y=torch.zeros_like(batch.y))
    batch = batch._replace(sources={name: (x, torch.ones_like(y)) for name, (x, y) in batch.sources.items()})
    main, _ = learner.losses(network, batch, 5, seeded())
    assert_close(
        main, F.cross_entropy(network(torch.cat([batch.x, *(x for x, _ in batch.sources.values())]))[:4], batch.y)
    )
    before = weights(learner.adversary.network)
    learner.after_step(network)
    assert not moved(before, weights(learner.adversary.network))


@pytest.mark.parametrize(("steps", "share", "first"), [(10, 0.5, 5), (2, 0.9, 1), (3, 0.01, 1), (1000, 0.25, 250)])
def test_both_stages_have_a_step(steps, share, first):
    assert fada(steps, pretraining=share).adapts_from == first


def test_the_size_of_the_discriminator():
    learner = fada()
    started(learner)
    assert [list(p.shape) for p in learner.adversary.network.parameters()] == [[128, 16], [128], [4, 128], [4]]


def test_errors():
    with pytest.raises(ValueError, match=r"`pretraining`.*between 0 and 1.*1"):
        FADASettings(pretraining=1)
    with pytest.raises(ValueError, match=r"`gamma`.*-1"):
        FADASettings(gamma=-1)
    with pytest.raises(ValueError, match=r"at least 2 steps\. Got 1"):
        fada(steps=1)
    with pytest.raises(RuntimeError, match=r"start\(network\)"):
        fada().state_dict()
