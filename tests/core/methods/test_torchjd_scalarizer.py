"""Scalarisers of TorchJD as weights: the derivative of the scalar with respect to the losses."""

import math

import pytest
import torch
from torch import tensor
from torch.testing import assert_close

from arml import Reweighter, Signals, TorchJDScalarizer

scalarization = pytest.importorskip("torchjd.scalarization")
LOSSES = tensor([1.0, 2.0, 0.5], dtype=torch.float64)


def follow(method, steps, losses=LOSSES, present=None):
    state = method.init(torch.zeros_like(losses))
    for _ in range(steps):
        weights, state = method.update(state, Signals(losses, present=present))
    return weights, state


@pytest.mark.parametrize(
    ("scalarizer", "expected"),
    [
        (scalarization.Sum(), [1, 1, 1]),
        (scalarization.Mean(), [1 / 3] * 3),
        (scalarization.Constant(tensor([1.0, 3.0, 2.0], dtype=torch.float64)), [1, 3, 2]),
        # the geometric mean of 1, 2 and 1/2 is 1: derivatives 1 / (3 L_i)
        (scalarization.GeometricMean(), [1 / 3, 1 / 6, 2 / 3]),
        # softmax(L / 3 / mu) / 3, with mu = 1/3
        (scalarization.STCH(mu=1 / 3), [math.exp(x) / sum(map(math.exp, (1, 2, 0.5))) / 3 for x in (1, 2, 0.5)]),
        # variances of 1: half of every loss
        (scalarization.UW(3), [0.5, 0.5, 0.5]),
    ],
    ids=repr,
)
def test_weights_are_derivatives(scalarizer, expected):
    weights, _ = follow(TorchJDScalarizer(scalarizer), 1)
    assert_close(weights, tensor(expected, dtype=torch.float64))


def test_parameters_learn_as_with_the_optimiser_of_torch():
    twin = scalarization.UW(3).double()
    optimizer = torch.optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(6):
        losses = LOSSES.clone().requires_grad_()
        optimizer.zero_grad()
        twin(losses).backward()
        optimizer.step()
    uncertainty = scalarization.UW(3)
    weights, state = follow(TorchJDScalarizer(uncertainty, lr=0.1), 6)
    assert_close(weights, losses.grad)
    assert_close(state.learned, twin.log_var.detach())
    assert not uncertainty.log_var.any()  # the caller's object stays as it was


def test_the_step_has_the_gradient_of_the_scalar():
    theta = torch.randn(4, dtype=torch.float64, requires_grad=True)
    main, a, b = theta.square().sum(), (theta - 1).square().sum(), theta.exp().sum()
    reweighter = Reweighter(TorchJDScalarizer(scalarization.STCH(mu=0.5)), ["a", "b"], [theta])
    found = torch.autograd.grad(reweighter(main, {"a": a, "b": b}), theta, retain_graph=True)
    expected = torch.autograd.grad(scalarization.STCH(mu=0.5)(torch.stack([main, a, b])), theta)
    assert_close(found, expected)


def test_random_draws_resume_from_a_checkpoint():
    def make():
        return Reweighter(TorchJDScalarizer(scalarization.Random(), seed=3), ["a", "b"], [theta])

    theta = torch.ones(2, dtype=torch.float64, requires_grad=True)
    losses = theta.sum(), {"a": theta.prod(), "b": theta[0] * 1}
    whole, part = make(), make()
    for _ in range(3):
        part(*losses)
    resumed = make()
    resumed.load_state_dict(part.state_dict())
    history = [whole(*losses) and whole.weights for _ in range(6)]
    assert [resumed(*losses) and resumed.weights for _ in range(3)] == history[3:]
    assert len({str(weights) for weights in history}) == 6


def test_a_batch_without_some_tasks_shows_the_others_alone():
    present = tensor([True, False, True])
    weights, _ = follow(TorchJDScalarizer(scalarization.Mean()), 1, present=present)
    assert_close(weights, tensor([0.5, 1.0, 0.5], dtype=torch.float64))
    fixed = TorchJDScalarizer(scalarization.Constant(tensor([1.0, 3.0, 2.0])))
    assert follow(fixed, 1, present=present)[0].tolist() == [1, 1, 1]


def test_a_derivative_that_is_not_finite_changes_nothing():
    weights, _ = follow(TorchJDScalarizer(scalarization.GeometricMean()), 1, tensor([1.0, 0.0, 2.0]))
    assert weights.tolist() == [1, 1, 1]


@pytest.mark.parametrize("scalarizer", [scalarization.DWA(), scalarization.FAMO(3)], ids=repr)
def test_memory_that_a_checkpoint_would_lose_is_refused(scalarizer):
    with pytest.raises(ValueError, match=r"keeps memory of its own.* or use arml.DWA or arml.FAMO"):
        TorchJDScalarizer(scalarizer)


def test_a_scalariser_for_another_number_of_tasks_is_refused():
    with pytest.raises(ValueError, match=r"one per auxiliary task, 3 together. Got 5"):
        TorchJDScalarizer(scalarization.UW(5)).init(LOSSES)
