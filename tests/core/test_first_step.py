"""The first update of the weights, whatever the number of tasks and the scale of the losses: it reaches no corner."""

import math

import pytest
import torch
from core.laws import signals_from
from torch import nn
from torch.testing import assert_close

from arml import ARML, OLAUX, GatedARML, Reweighter

SCALES = [1e-6, 1e-3, 1.0, 1e3, 1e6]
METHODS = [ARML(), ARML(projection="shift_clamp"), ARML(scale_free=True), GatedARML(), OLAUX()]


def first_step(method, num_aux, scale, stride=1.0, seed=0):
    """Weights after the first update with gradients of losses that are multiplied by ``scale``."""
    generator = torch.Generator().manual_seed(seed)
    jacobian = scale * torch.randn(1 + num_aux, 30, generator=generator, dtype=torch.float64)
    state = method.init(torch.zeros(1 + num_aux, dtype=torch.float64))
    signals = signals_from(jacobian, scale * torch.ones(1 + num_aux, dtype=torch.float64), method, state)
    return method.update(state, signals._replace(stride=stride))[0]


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("num_aux", [1, 2, 3, 13, 39, 200])
@pytest.mark.parametrize("scale", SCALES)
def test_the_first_step_reaches_no_corner(method, num_aux, scale):
    limit = getattr(method, "arml", method).max_step
    for seed in range(5):
        weights = first_step(method, num_aux, scale, stride=5.0, seed=seed)
        assert bool(weights.isfinite().all())
        assert float(weights.min()) >= 1 - limit - 1e-9 > 0
        assert float((weights - 1).abs().max()) <= limit + 1e-9
        if not isinstance(method, OLAUX):
            assert_close(weights[1:].sum(), torch.tensor(float(num_aux), dtype=torch.float64))


def test_without_a_limit_the_first_step_is_the_papers():
    """With 39 tasks of ordinary scale it leaves most tasks at 0."""
    weights = first_step(ARML(max_step=math.inf), 39, 1.0)
    assert int((weights == 0).sum()) > 20
    jacobian = torch.tensor([[1.0, 0.0], [1.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
    method = ARML(lr=1.0, max_step=math.inf)
    state = method.init(torch.zeros(3, dtype=torch.float64))
    weights, _ = method.update(state, signals_from(jacobian, torch.ones(3), method, state))
    assert weights.tolist() == [1, 2, 0]


def test_a_step_within_the_limit_is_the_papers_bit_for_bit():
    for seed in range(20):
        limited, paper = (first_step(ARML(lr=0.001, max_step=limit), 6, 1.0, seed=seed) for limit in (0.75, math.inf))
        assert torch.equal(limited, paper)


def test_a_shortened_step_keeps_its_direction():
    short = first_step(ARML(lr=1e-6), 6, 1.0) - 1
    limited = first_step(ARML(lr=1e3, max_step=0.3), 6, 1.0) - 1
    assert_close(limited / 0.3, short / short.abs().max(), atol=1e-7, rtol=0)


def test_the_limit_counts_only_what_the_projection_leaves():
    """Slopes that all tasks share move no weight, so they do not use up the step."""
    move = ARML(max_step=0.5).move
    ones, here = torch.ones(3, dtype=torch.float64), torch.ones(3, dtype=torch.bool)
    step = torch.tensor([0.3, -0.1, -0.2], dtype=torch.float64)
    assert_close(move(ones, step + 100, here, total=3), ones - step)


@pytest.mark.parametrize("seed", range(5))
def test_later_steps_move_no_weight_further_than_twice_the_limit(seed):
    """Also at corners, where the projection moves weights that the step did not."""
    generator = torch.Generator().manual_seed(seed)
    method = ARML(lr=1e3, max_step=0.5)
    state = method.init(torch.zeros(8, dtype=torch.float64))
    before = state.weights
    for _ in range(50):
        jacobian = torch.randn(8, 20, generator=generator, dtype=torch.float64)
        weights, state = method.update(state, signals_from(jacobian, torch.ones(8), method, state))
        assert float((weights - before).abs().max()) <= 1.0 + 1e-9
        assert_close(weights[1:].sum(), torch.tensor(7.0, dtype=torch.float64))
        before = weights


@pytest.mark.parametrize("scale", SCALES)
def test_the_first_step_of_a_network_with_39_tasks_reaches_no_corner(scale):
    torch.manual_seed(0)
    trunk, heads = nn.Linear(6, 20).double(), nn.Linear(20, 40).double()
    tasks = [f"task {k}" for k in range(39)]
    reweighter = Reweighter(ARML(), tasks, trunk)
    x = torch.randn(16, 6, dtype=torch.float64)
    losses = scale * (heads(trunk(x).tanh()) - torch.randn(16, 40, dtype=torch.float64)).square().mean(0)
    reweighter(losses[0], dict(zip(tasks, losses[1:], strict=True))).backward()
    weights = list(reweighter.weights.values())
    assert min(weights) > 0
    assert max(weights) < 2
    assert sum(weights) == pytest.approx(39)


@pytest.mark.parametrize("make", [ARML, OLAUX])
@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan])
def test_a_limit_that_is_no_positive_number_is_refused(make, wrong):
    with pytest.raises(ValueError, match=r"`max_step` should be a positive number, or math\.inf for no limit"):
        make(max_step=wrong)
