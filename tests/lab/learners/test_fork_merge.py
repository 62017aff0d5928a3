"""ForkMerge against a slow twin, and the lambda that validation examples choose."""

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits as bce
from torch.optim import SGD
from torch.testing import assert_close

from arml.lab.data.batches import AttributeBatch
from arml.lab.data.targets import Target
from arml.lab.learners.fork_merge import GRID, Branching, ForkMerge, merge
from arml.lab.learners.joint_targets import no_augmentation
from arml.lab.models.network import Network
from arml.lab.tasks.attributes import Attributes

EXACT = {"rtol": 0, "atol": 0}
MERGE_EVERY = 3


def two_classes(*values):
    return Target(torch.tensor(values, dtype=torch.float64), classes=("no", "yes"))


def make_batch(seed):
    generator = torch.Generator().manual_seed(seed)
    x, aux_x = (torch.randn(n, 3, dtype=torch.float64, generator=generator) for n in (4, 6))
    y, aux_y = (torch.randint(2, size, generator=generator).double() for size in ((4,), (6, 2)))
    return AttributeBatch(x, y, aux_x, aux_y)


VALIDATION = make_batch(99)


def validation_loss(network):
    assert not network.training
    with torch.no_grad():
        return float(bce(network(VALIDATION.x).squeeze(1), VALIDATION.y))


def step_size(step):
    return 0.5 if step < 4 else 0.1


def set_lr(optimizer, step):
    for group in optimizer.param_groups:
        group["lr"] = step_size(step)


def make_learner(score=validation_loss, merges_after=lambda steps: steps % MERGE_EVERY == 0):
    main = Attributes({"main": two_classes(0, 1)}, torch.arange(2))
    aux = Attributes({"a": two_classes(0, 1), "b": two_classes(1, 0)}, torch.arange(2))
    branching = Branching(lambda network: SGD(network.parameters(), lr=1.0, momentum=0.9), set_lr, score, merges_after)
    return ForkMerge(main, aux, no_augmentation, branching)


def make_network():
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.Tanh())
    return Network(trunk, 5, {"class": 1, "aux": 2}).double()


def make_optimizer(network):
    return SGD(network.parameters(), lr=1.0, momentum=0.9)


def train(network, learner, optimizer, steps):
    generator = torch.Generator()
    for step in steps:
        set_lr(optimizer, step)
        main, aux = learner.losses(network, make_batch(step), step, generator)
        optimizer.zero_grad()
        (main + sum(aux.values())).backward()
        optimizer.step()
        learner.after_step(network)


def train_twins(steps):
    """Two networks with their own optimisers; returns the merged network, and every lambda."""
    alone = make_network()
    joint = deepcopy(alone)
    optimizers, chosen = [make_optimizer(alone), make_optimizer(joint)], []
    for step in range(steps):
        batch = make_batch(step)
        z = alone(batch.x).squeeze(1)
        features = joint.features(torch.cat([batch.x, batch.aux_x]))
        outputs = joint.head("class", features[:4]).squeeze(1), joint.head("aux", features[4:])
        losses = (
            bce(z, batch.y),
            bce(outputs[0], batch.y) + sum(bce(outputs[1][:, k], batch.aux_y[:, k]) for k in (0, 1)),
        )
        for optimizer, loss in zip(optimizers, losses, strict=True):
            set_lr(optimizer, step)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if (step + 1) % MERGE_EVERY == 0:
            chosen.append(merge_twins(alone, joint))
    return joint, chosen


def merge_twins(alone, joint):
    candidates = {}
    for tenths in (0, 2, 4, 6, 8, 10):
        mixed = deepcopy(joint).eval()
        tensors = [[*network.parameters(), *network.buffers()] for network in (mixed, alone, joint)]
        for to, a, b in zip(*tensors, strict=True):
            if to.is_floating_point():
                to.data = a.data * tenths / 10 + b.data * (10 - tenths) / 10
        candidates[tenths / 10] = (validation_loss(mixed), mixed.state_dict())
    best = min(candidates, key=lambda share: candidates[share][0])
    for network in (alone, joint):
        network.load_state_dict(candidates[best][1])
    return best


def test_branches_and_merges_are_those_of_a_slow_twin():
    network, learner = make_network(), make_learner()
    learner.start(network)
    train(network, learner, make_optimizer(network), range(4 * MERGE_EVERY))
    twin, chosen = train_twins(4 * MERGE_EVERY)
    assert learner.chosen == chosen
    assert len(set(chosen)) > 1  # or any fixed share would do
    assert_close(network.state_dict(), twin.state_dict())


def test_after_a_merge_both_branches_are_the_merged_network():
    network, learner = make_network(), make_learner()
    learner.start(network)
    train(network, learner, make_optimizer(network), range(MERGE_EVERY - 1))
    assert not torch.equal(learner.state_dict()["branch"]["heads.class.weight"], network.heads["class"].weight)
    train(network, learner, make_optimizer(network), [MERGE_EVERY - 1])
    assert_close(learner.state_dict()["branch"], network.state_dict(), **EXACT)
    assert network.training


@pytest.mark.parametrize("share", GRID)
def test_validation_chooses_lambda(share):
    """The score is the distance from a mixture of the two branches."""
    ends = []

    def distance(network):
        mixed = network.heads["class"].bias.item()
        ends.append(mixed)  # the first candidate is the joint branch
        return abs(mixed - wanted)

    network, learner = make_network(), make_learner(distance, merges_after=lambda steps: steps == 1)
    learner.start(network)
    twin, other = make_network(), make_learner(merges_after=lambda steps: False)
    other.start(twin)
    train(twin, other, make_optimizer(twin), [0])
    alone, joint = other.state_dict()["branch"]["heads.class.bias"].item(), twin.heads["class"].bias.item()
    assert abs(alone - joint) > 1e-3
    wanted = share * alone + (1 - share) * joint
    train(network, learner, make_optimizer(network), [0])
    assert learner.chosen == [share]
    assert network.heads["class"].bias.item() == pytest.approx(wanted)
    assert (ends[0], ends[-1]) == pytest.approx((joint, alone))


def test_on_a_tie_the_joint_branch_counts():
    network, learner = make_network(), make_learner(lambda network: 0.0)
    learner.start(network)
    train(network, learner, make_optimizer(network), range(MERGE_EVERY))
    assert learner.chosen == [0.0]


def test_the_heads_of_other_targets_learn_in_one_branch_only():
    network, learner = make_network(), make_learner(merges_after=lambda steps: False)
    learner.start(network)
    before = network.heads["aux"].weight.detach().clone()
    train(network, learner, make_optimizer(network), range(2))
    assert_close(learner.state_dict()["branch"]["heads.aux.weight"], before, **EXACT)
    assert not torch.equal(network.heads["aux"].weight, before)


def test_counters_are_those_of_the_joint_branch():
    merged = merge({"n": torch.tensor(3), "w": torch.tensor(1.0)}, {"n": torch.tensor(5), "w": torch.tensor(0.0)}, 0.4)
    assert merged == {"n": torch.tensor(5), "w": torch.tensor(0.4)}


@pytest.mark.parametrize("done", [2, 3, 4])
def test_a_checkpoint_before_at_and_after_a_merge_continues_exactly(done):
    network, learner = make_network(), make_learner()
    learner.start(network)
    optimizer = make_optimizer(network)
    train(network, learner, optimizer, range(done))
    saved = deepcopy([network.state_dict(), learner.state_dict(), optimizer.state_dict()])
    train(network, learner, optimizer, range(done, 8))

    other = make_learner()
    resumed = make_network()
    other.start(resumed)
    again = make_optimizer(resumed)
    for part, state in zip((resumed, other, again), saved, strict=True):
        part.load_state_dict(state)
    train(resumed, other, again, range(done, 8))
    assert_close(resumed.state_dict(), network.state_dict(), **EXACT)
    assert_close(other.state_dict()["branch"], learner.state_dict()["branch"], **EXACT)
    assert other.chosen == learner.chosen
