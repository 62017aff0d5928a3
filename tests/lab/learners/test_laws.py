"""What every learner owes us. A new learner joins by one line."""

from copy import deepcopy

import pytest
import torch
from torch.optim import Adam
from torch.testing import assert_close

from arml.gradients import DualNumbers, alignment, double_backward, pairwise
from arml.lab.data.augment import Augment
from arml.lab.data.digits import load
from arml.lab.data.preprocess import Scale
from arml.lab.learners import (
    S4L,
    VAT,
    Batch,
    MeanTeacher,
    MeanTeacherSettings,
    PiModel,
    PiModelSettings,
    PseudoLabel,
    PseudoLabelSettings,
    S4LSettings,
    Supervised,
    SupervisedSettings,
    VATSettings,
)
from arml.lab.models import Network, small

AUGMENT = Augment(flip=False, shift=1, noise=0.1)
EVERY_LEARNER = {
    "supervised": lambda: Supervised(SupervisedSettings(), AUGMENT),
    "pi_model": lambda: PiModel(PiModelSettings(ramp_steps=50), AUGMENT),
    "mean_teacher": lambda: MeanTeacher(MeanTeacherSettings(ramp_steps=50), AUGMENT),
    "vat": lambda: VAT(VATSettings(epsilon=1.0, ramp_steps=50), AUGMENT),
    "vat_entmin": lambda: VAT(VATSettings(epsilon=1.0, ramp_steps=50, entropy=0.06, divergence="miyato"), AUGMENT),
    "pseudo_label": lambda: PseudoLabel(PseudoLabelSettings(ramp_steps=50, threshold=0.5), AUGMENT),
    "s4l": lambda: S4L(S4LSettings(), AUGMENT),
}
WITH_TASKS = {name: make for name, make in EVERY_LEARNER.items() if make().tasks}
EXACT = {"rtol": 0, "atol": 0}


@pytest.fixture(params=EVERY_LEARNER.values(), ids=EVERY_LEARNER)
def make(request):
    return request.param


def started(learner, dtype=torch.float32):
    network = Network(small(num_features=32), 32, {"class": 10, **learner.heads}).to(dtype)
    learner.start(network)
    return network


def a_batch(dtype=torch.float32):
    return Batch(torch.randn(12, 1, 8, 8, dtype=dtype), torch.arange(12) % 10, torch.randn(16, 1, 8, 8, dtype=dtype))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def train(network, learner, batches, generator, optimizer=None):
    optimizer = optimizer or Adam(network.parameters(), lr=0.005)
    for step, batch in batches:
        main, aux = learner.losses(network, batch, step, generator)
        optimizer.zero_grad()
        (main + sum(aux.values())).backward()
        optimizer.step()
        learner.after_step(network)


def test_every_task_has_a_loss_that_is_a_positive_scalar(make):
    learner = make()
    main, aux = learner.losses(started(learner), a_batch(), 20, seeded())
    assert tuple(aux) == learner.tasks
    for loss in (main, *aux.values()):
        assert loss.shape == ()
        assert loss.isfinite()
        assert loss >= 0


def test_statistics_are_those_of_the_main_pass(make):
    learner = make()
    network, batch = started(learner), a_batch()
    twin = deepcopy(network)
    learner.losses(network, batch, 20, seeded())
    counters = [b for name, b in network.named_buffers() if "num_batches" in name]
    assert all(int(counter) == 1 for counter in counters)
    generator = seeded()
    images = [AUGMENT(batch.x, generator)] + ([AUGMENT(batch.u, generator)] if learner.tasks else [])
    twin(torch.cat(images))
    assert_close(dict(network.named_buffers()), dict(twin.named_buffers()), **EXACT)


def test_all_randomness_comes_from_the_generator(make):
    learner, batch = make(), a_batch()
    network, given, state = started(learner), deepcopy(batch), torch.get_rng_state()
    once, again, other = (learner.losses(network, batch, 20, seeded(seed)) for seed in (1, 1, 2))
    assert_close(once, again, **EXACT)
    assert not torch.equal(once[0], other[0])
    assert torch.equal(torch.get_rng_state(), state), "the global state is not touched"
    assert_close(tuple(batch), tuple(given), **EXACT)


def test_training_continues_exactly_from_a_checkpoint(make):
    learner, generator = make(), seeded()
    network, batches = started(learner), list(enumerate(a_batch() for _ in range(4)))
    optimizer = Adam(network.parameters(), lr=0.005)
    train(network, learner, batches[:2], generator, optimizer)
    saved = deepcopy([network.state_dict(), learner.state_dict(), optimizer.state_dict(), generator.get_state()])
    train(network, learner, batches[2:], generator, optimizer)

    other = make()
    resumed, generator = started(other), seeded(9)
    again = Adam(resumed.parameters(), lr=0.005)
    for part, state in zip((resumed, other, again), saved, strict=False):
        part.load_state_dict(state)
    generator.set_state(saved[3])
    train(resumed, other, batches[2:], generator, again)
    assert_close(resumed.state_dict(), network.state_dict(), **EXACT)
    for mine, theirs in zip(_tensors(other.state_dict()), _tensors(learner.state_dict()), strict=True):
        assert_close(mine, theirs, **EXACT)


def _tensors(state):
    """All numbers of a learner's state."""
    return [
        torch.as_tensor(v) for part in state.values() for v in (part.values() if isinstance(part, dict) else [part])
    ]


@pytest.mark.parametrize("make", WITH_TASKS.values(), ids=WITH_TASKS)
def test_gradients_can_be_aligned_in_every_way(make):
    """Double backward, and dual numbers on a closure that repeats the draws, agree with one backward for each task."""
    learner, batch = make(), a_batch(torch.float64)
    network = started(learner, torch.float64)
    learner.after_step(network)
    with torch.no_grad():
        network.heads["class"].weight.mul_(3)  # away from the teacher, and sure of something

    def losses():
        main, aux = learner.losses(network, batch, 20, seeded())
        return [main, *aux.values()]

    directions = torch.cat([torch.eye(1 + len(learner.tasks)), torch.ones(1, 1 + len(learner.tasks))])
    computed = losses()
    expected = alignment(computed, network.trunk, directions, engine=pairwise)
    assert_close(alignment(computed, network.trunk, directions, engine=double_backward), expected)
    dual = DualNumbers(lambda: torch.stack(losses()), network)
    assert_close(alignment(computed, network.trunk, directions, engine=dual), expected)


def test_it_learns_digits_from_few_labels(make):
    """100 labels, chance is 90 % wrong."""
    digits, scale, generator, learner = load(), Scale(), seeded(), make()
    x, y = scale(digits.train.x), digits.train.y
    labelled = torch.cat([(y == c).nonzero().flatten()[:10] for c in range(10)])

    def batch():
        chosen = labelled[torch.randint(100, (24,), generator=generator)]
        return Batch(x[chosen], y[chosen], x[torch.randint(len(x), (24,), generator=generator)])

    network = started(learner)
    train(network, learner, ((step, batch()) for step in range(150)), generator)
    wrong = network.eval()(scale(digits.test.x)).argmax(1) != digits.test.y
    assert wrong.float().mean() < 0.4
