"""Pooled sources, joint training and the target alone; and what every learner of domains owes us."""

import math
from copy import deepcopy

import pytest
import torch
from torch import nn, tensor
from torch.nn import functional as F
from torch.optim import Adam
from torch.testing import assert_close

from arml import ARML, Reweighter, Uniform
from arml.gradients import DualNumbers, alignment, double_backward, pairwise
from arml.lab.data.augment import Augment
from arml.lab.data.batches import DomainBatch
from arml.lab.data.digits import load
from arml.lab.data.preprocess import Scale
from arml.lab.learners.dsam import DSAM, DSAMSettings
from arml.lab.learners.fada import FADA, FADASettings
from arml.lab.learners.jigen import JiGen, JiGenSettings
from arml.lab.learners.joint_training import Baseline, DomainSettings, JointTraining, TargetOnly, all_domains
from arml.lab.learners.shape_bias import ShapeBias, ShapeBiasSettings
from arml.lab.models import Network, small

AUGMENT = Augment(flip=False, shift=1, noise=0.1)
SOURCES = ("photo", "sketch")
PERMUTATIONS = 5  # finding few takes little time
EVERY_LEARNER = {
    "baseline": lambda: Baseline(DomainSettings(), SOURCES, AUGMENT),
    "joint": lambda: JointTraining(DomainSettings(), SOURCES, AUGMENT),
    "target_only": lambda: TargetOnly(DomainSettings(), AUGMENT),
    "jigen": lambda: JiGen(JiGenSettings(bias=0.5, num_permutations=PERMUTATIONS), SOURCES, AUGMENT),
    "jigen_task": lambda: JiGen(
        JiGenSettings(bias=0.5, num_permutations=PERMUTATIONS, jigsaw_as_task=True, ordered_only=True), SOURCES, AUGMENT
    ),
    "shape_bias": lambda: ShapeBias(ShapeBiasSettings(bias=0.5, num_permutations=PERMUTATIONS), SOURCES, AUGMENT),
    "fada": lambda: FADA(FADASettings(discriminator_updates=5), SOURCES, AUGMENT, steps=8),
    "dsam": lambda: DSAM(DSAMSettings(dropout=0.1), SOURCES, AUGMENT),
}
WITH_TASKS = {name: make for name, make in EVERY_LEARNER.items() if make().tasks}
STEP = 20
"""Far enough for all stages."""
EXACT = {"rtol": 0, "atol": 0}


@pytest.fixture(params=EVERY_LEARNER.values(), ids=EVERY_LEARNER)
def make(request):
    return request.param


@pytest.fixture(params=WITH_TASKS.values(), ids=WITH_TASKS)
def make_with_tasks(request):
    return request.param


def started(learner, dtype=torch.float32):
    network = learner.network(small(num_features=32), 10).to(dtype)
    learner.start(network)
    return network


def a_batch(shots=10, dtype=torch.float32):
    def images(count):
        return torch.randn(count, 1, 8, 8, dtype=dtype), torch.arange(count) % 10

    return DomainBatch(*images(shots), {name: images(12) for name in SOURCES})


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def train(network, learner, batches, generator, optimizer):
    for step, batch in batches:
        main, aux = learner.losses(network, batch, step, generator)
        optimizer.zero_grad()
        sum(aux.values(), start=main if main is not None and (learner.train_on_main or not aux) else 0.0).backward()
        optimizer.step()
        learner.after_step(network)


def test_every_task_has_a_loss_that_is_a_positive_scalar(make):
    learner = make()
    main, aux = learner.losses(started(learner), a_batch(), STEP, seeded())
    assert tuple(aux) == learner.tasks
    for loss in (main, *aux.values()):
        assert loss.shape == ()
        assert loss.isfinite()
        assert loss >= 0


def test_without_shots_there_is_no_main_loss(make_with_tasks):
    learner = make_with_tasks()
    main, aux = learner.losses(started(learner), a_batch(shots=0), STEP, seeded())
    assert main is None
    assert all(loss.isfinite() for loss in aux.values())


def test_one_pass_moves_the_statistics(make):
    learner = make()
    network, batch, seen = started(learner), a_batch(), []
    twin = deepcopy(network.trunk)
    # Some networks take the layers of the trunk one by one, so that it is not called itself.
    hook = network.trunk.layer1.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    learner.losses(network, batch, STEP, seeded())
    hook.remove()
    x, *steering = seen
    assert len(x) == {"TargetOnly": 10, "JointTraining": 34, "FADA": 34}.get(type(learner).__name__, 24)
    assert [len(others) for others in steering] == ([10] if learner.tasks and not learner.train_on_main else [])
    twin(x)
    assert_close(dict(network.trunk.named_buffers()), dict(twin.named_buffers()), **EXACT)


def test_all_randomness_comes_from_the_generator(make):
    learner, batch = make(), a_batch()
    network, given, state = started(learner), deepcopy(batch), torch.get_rng_state()
    once, again, other = (learner.losses(network, batch, STEP, seeded(seed)) for seed in (1, 1, 2))
    learner.after_step(network)
    assert_close(once, again, **EXACT)
    assert not torch.equal(once[0], other[0])
    assert torch.equal(torch.get_rng_state(), state), "the global state is not touched"
    assert_close(tuple(batch), tuple(given), **EXACT)


@pytest.mark.parametrize("saved_after", [3, 4, 5])  # FADA changes its stage after 4 steps
def test_training_continues_exactly_from_a_checkpoint(make, saved_after):
    learner, generator = make(), seeded()
    network, batches = started(learner), list(enumerate(a_batch() for _ in range(6)))
    optimizer = Adam(network.parameters(), lr=0.005)
    train(network, learner, batches[:saved_after], generator, optimizer)
    saved = deepcopy([network.state_dict(), learner.state_dict(), optimizer.state_dict(), generator.get_state()])
    train(network, learner, batches[saved_after:], generator, optimizer)

    other = make()
    resumed, generator = started(other), seeded(9)
    again = Adam(resumed.parameters(), lr=0.005)
    for part, state in zip((resumed, other, again), saved, strict=False):
        part.load_state_dict(state)
    generator.set_state(saved[3])
    train(resumed, other, batches[saved_after:], generator, again)
    assert_close(resumed.state_dict(), network.state_dict(), **EXACT)
    assert_close(_flat(other.state_dict()), _flat(learner.state_dict()), **EXACT)


def _flat(state):
    """All tensors and numbers of a nested state."""
    if isinstance(state, dict | list):
        return [leaf for part in (state.values() if isinstance(state, dict) else state) for leaf in _flat(part)]
    return [] if state is None else [torch.as_tensor(state)]


def test_gradients_can_be_aligned_in_every_way(make_with_tasks):
    """Double backward, and dual numbers on a closure that repeats the draws, agree with one backward for each task."""
    learner, batch = make_with_tasks(), a_batch(dtype=torch.float64)
    network = started(learner, torch.float64)

    def losses():
        main, aux = learner.losses(network, batch, STEP, seeded())
        return [main, *aux.values()]

    directions = torch.cat([torch.eye(1 + len(learner.tasks)), torch.ones(1, 1 + len(learner.tasks))])
    computed = losses()
    expected = alignment(computed, network.trunk, directions, engine=pairwise)
    assert_close(alignment(computed, network.trunk, directions, engine=double_backward), expected)
    dual = DualNumbers(lambda: torch.stack(losses()), network)
    assert_close(alignment(computed, network.trunk, directions, engine=dual), expected)


def test_it_learns_digits(make):
    """Sources are digits and pale digits, the target has 10 per class; chance is 90 % wrong.

    At 9 x 9 pixels, of which puzzles cut nothing off.
    """
    digits, generator, learner = load(), seeded(), make()

    def preprocess(x):
        return F.interpolate(Scale()(x), size=9, mode="bilinear")

    x, y = preprocess(digits.train.x), digits.train.y
    shots = torch.cat([(y == c).nonzero().flatten()[:10] for c in range(10)])

    def batch():
        few, a, b = (torch.randint(n, (k,), generator=generator) for n, k in ((100, 24), (len(x), 32), (len(x), 32)))
        return DomainBatch(x[shots[few]], y[shots[few]], {"photo": (x[a], y[a]), "sketch": (0.8 * x[b], y[b])})

    network = started(learner)
    train(network, learner, ((s, batch()) for s in range(80)), generator, Adam(network.parameters(), lr=0.01))
    wrong = network.eval()(preprocess(digits.test.x)).argmax(1) != digits.test.y
    assert wrong.float().mean() < 0.45


LN3 = math.log(3)
STILL = Augment(flip=False, shift=0, noise=0.0)


def reader():
    """A network whose logits are the two pixels."""
    network = Network(nn.Flatten(), 2, {"class": 2}).double()
    network.heads["class"].weight.data = torch.eye(2, dtype=torch.float64)
    return network


def pixels(*logits):
    return tensor(logits, dtype=torch.float64).reshape(-1, 1, 1, 2)


def by_hand():
    """p is 3/4 for the first class at (ln 3, 0), and 1/2 at (0, 0)."""
    sure, unsure = [LN3, 0.0], [0.0, 0.0]
    sources = {"photo": (pixels(sure, unsure), tensor([0, 1])), "sketch": (pixels(sure), tensor([1]))}
    return DomainBatch(pixels(sure), tensor([0]), sources)


@pytest.mark.parametrize("learner", [Baseline, JointTraining])
def test_one_mean_for_every_domain(learner):
    main, aux = learner(DomainSettings(), SOURCES, STILL).losses(reader(), by_hand(), 0, seeded())
    assert_close(main, tensor(math.log(4 / 3), dtype=torch.float64))
    expected = {"photo": (math.log(4 / 3) + math.log(2)) / 2, "sketch": math.log(4)}
    assert_close({name: loss.item() for name, loss in aux.items()}, expected)


def test_the_target_alone_by_hand():
    main, aux = TargetOnly(DomainSettings(), STILL).losses(reader(), by_hand(), 0, seeded())
    assert_close(main, tensor(math.log(4 / 3), dtype=torch.float64))
    assert aux == {}
    with pytest.raises(ValueError, match=r"got none\. Ask for shots"):
        TargetOnly(DomainSettings(), STILL).losses(reader(), by_hand()._replace(x=pixels(), y=tensor([])), 0, seeded())


def pooled(network, batch, *, with_target):
    """The cross-entropy of the sources' images, in a pass with or without the target's."""
    target = batch.x if with_target else batch.x[:0]
    images = [target, *(x for x, _ in batch.sources.values())]
    labels = torch.cat([y for _, y in batch.sources.values()])
    return F.cross_entropy(network(torch.cat(images))[len(target) :], labels)


@pytest.mark.parametrize("kind", [Baseline, JointTraining])
def test_equal_weights_are_deep_all(kind):
    """Joint training adds the target's loss, the baseline does not."""
    learner, batch = kind(DomainSettings(), SOURCES, STILL), a_batch()
    network = started(learner)
    reweighter = Reweighter(
        Uniform(), learner.tasks, network.trunk, aux_scale=1 / len(SOURCES), train_on_main=learner.train_on_main
    )
    main, aux = learner.losses(network, batch, 0, seeded())
    extra = main if kind is JointTraining else 0
    assert_close(reweighter(main, aux), pooled(network, batch, with_target=kind is JointTraining) + extra)


def test_learners_that_are_only_steered_do_not_notice_the_target(make_with_tasks):
    """Without the target's images, or with other ones, the losses of the sources are the same to the last bit."""
    learner = make_with_tasks()
    network, batch = started(learner), a_batch()
    given, none, other = (batch, batch._replace(x=batch.x[:0], y=batch.y[:0]), batch._replace(x=3 * batch.x + 1))
    network_states, losses, draws = [], [], []
    for one in (given, none, other):
        twin, generator = deepcopy(network), seeded()
        losses.append(learner.losses(twin, one, STEP, generator)[1])
        network_states.append(twin.state_dict())
        draws.append(generator.get_state())
    same = all(torch.equal(losses[0][name], other[name]) for other in losses[1:] for name in learner.tasks)
    assert same == (not learner.train_on_main)
    if not learner.train_on_main:
        assert_close(network_states[1:], [network_states[0]] * 2, **EXACT)
        assert_close(draws[1:], [draws[0]] * 2, **EXACT)


def test_the_baseline_is_steered_and_not_trained_by_the_target():
    """The target's images are those of one source: it gets more weight, and the target's loss leaves no gradient."""
    learner = Baseline(DomainSettings(), SOURCES, STILL)
    network, batch = started(learner), a_batch()
    batch = batch._replace(x=batch.sources["photo"][0], y=batch.sources["photo"][1])
    reweighter = Reweighter(ARML(lr=0.1), learner.tasks, network.trunk, train_on_main=learner.train_on_main)
    main, aux = learner.losses(network, batch, 0, seeded())
    joint = reweighter(main, aux)
    assert reweighter.weights["photo"] > 1 > reweighter.weights["sketch"]
    assert_close(joint, sum(reweighter.weights[name] * loss for name, loss in aux.items()))


def test_domains_are_numbered_with_the_target_first():
    assert all_domains(a_batch(shots=2)).tolist() == [0] * 2 + [1] * 12 + [2] * 12
