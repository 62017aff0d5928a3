"""Noise that turns optimisation into sampling: the stationary distribution of a Gaussian target."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from arml import Langevin

NUM_EXAMPLES = 50
CHAINS = 1500
CURVATURES = torch.tensor([1.0, 10.0], dtype=torch.float64)


def stationary_variance(make_optimizer, steps, *, num_examples=NUM_EXAMPLES, temperature=1.0):
    """Variances of theta for the mean losses curvature * theta^2 / 2, many chains side by side."""
    start = torch.randn(CHAINS, len(CURVATURES), dtype=torch.float64)
    theta = nn.Parameter(start / (CURVATURES * num_examples).sqrt())
    optimizer = make_optimizer([theta])
    Langevin(optimizer, num_examples, temperature=temperature)
    variances = []
    for step in range(steps):
        optimizer.zero_grad()
        (CURVATURES * theta.square() / 2).sum().backward()
        optimizer.step()
        if step >= steps // 2:
            variances.append(theta.detach().var(dim=0))
    return torch.stack(variances).mean(0)


OPTIMIZERS = {
    "sgd": (lambda p: torch.optim.SGD(p, lr=0.01), 800),
    "momentum": (lambda p: torch.optim.SGD(p, lr=0.002, momentum=0.9), 800),
    "nesterov": (lambda p: torch.optim.SGD(p, lr=0.001, momentum=0.9, nesterov=True), 1000),
    "dampening": (lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, dampening=0.9), 1000),
    # The preconditioner must change slowly against the chain, as the formula assumes.
    "adam without momentum": (lambda p: torch.optim.Adam(p, lr=0.003, betas=(0.0, 0.9999)), 1200),
    "adam": (lambda p: torch.optim.Adam(p, lr=0.003, betas=(0.9, 0.9999)), 1200),
    "adamw": (lambda p: torch.optim.AdamW(p, lr=0.003, betas=(0.9, 0.9999), weight_decay=0.0), 1200),
    "amsgrad": (lambda p: torch.optim.Adam(p, lr=0.003, betas=(0.9, 0.9999), amsgrad=True), 1200),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_stationary_variance_is_that_of_the_posterior(name):
    """N examples of a loss with curvature a: theta has variance 1 / (N a), in flat and in steep directions."""
    make_optimizer, steps = OPTIMIZERS[name]
    found = stationary_variance(make_optimizer, steps)
    assert_close(found, 1 / (CURVATURES * NUM_EXAMPLES), rtol=0.1, atol=0)


def test_noise_that_bypasses_the_momentum_is_too_wide_in_steep_directions():
    """Why it does not: the same long-run noise on the parameters alone, 2 lr / (1 - mu) / N."""
    theta, lr, mu, curvature = nn.Parameter(torch.zeros(CHAINS, dtype=torch.float64)), 0.002, 0.9, 10.0
    optimizer, variances = torch.optim.SGD([theta], lr=lr, momentum=mu), []
    for step in range(800):
        optimizer.zero_grad()
        (curvature * theta.square() / 2).sum().backward()
        optimizer.step()
        with torch.no_grad():
            theta += (2 * lr / (1 - mu) / NUM_EXAMPLES) ** 0.5 * torch.randn_like(theta)
        if step >= 400:
            variances.append(float(theta.detach().var()))
    assert sum(variances) / len(variances) > 2 / (curvature * NUM_EXAMPLES)


def test_it_is_wrong_without_the_number_of_examples():
    make_optimizer, steps = OPTIMIZERS["sgd"]
    found = stationary_variance(make_optimizer, steps, num_examples=1)
    assert_close(found, 1 / CURVATURES, rtol=0.1, atol=0)
    assert bool((found > 10 / (CURVATURES * NUM_EXAMPLES)).all())


def test_temperature_scales_the_variance():
    make_optimizer, steps = OPTIMIZERS["sgd"]
    warm, cold = (stationary_variance(make_optimizer, steps, temperature=t) for t in (3.0, 0.0))
    assert_close(warm, 3 / (CURVATURES * NUM_EXAMPLES), rtol=0.1, atol=0)
    assert bool((cold < 1e-6).all())


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(4, 3)).square().mean().backward()
    optimizer.step()


def test_adam_noise_by_hand():
    """After one step v_hat = g^2, so the variance is 2 lr / (|g| + eps) / N for each entry."""
    theta = nn.Parameter(torch.tensor([1.0]).repeat(20000))
    optimizer = torch.optim.Adam([theta], lr=0.1, betas=(0.0, 0.999))
    Langevin(optimizer, num_examples=10)
    (3 * theta).sum().backward()
    optimizer.step()
    assert float(theta.detach().var()) == pytest.approx(2 * 0.1 / 3 / 10, rel=0.05)
    assert float(theta.detach().mean()) == pytest.approx(0.9, abs=0.01)


def test_entries_without_gradient_get_no_noise_from_adam():
    """Their preconditioner is 1 / eps, a hundred million."""
    theta = nn.Parameter(torch.ones(4))
    optimizer = torch.optim.Adam([theta], lr=0.1)
    Langevin(optimizer, num_examples=10)
    for _ in range(3):
        optimizer.zero_grad()
        theta[:2].square().sum().backward()
        optimizer.step()
    assert theta[2:].tolist() == [1, 1]
    assert bool((theta[:2] != 1).all())


def test_noise_on_the_shared_parameters_only():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    twin = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Langevin(optimizer, num_examples=10, parameters=model[0].parameters())
    step(model, optimizer)
    step(twin, torch.optim.SGD(twin.parameters(), lr=0.1))
    assert not torch.equal(model[0].weight, twin[0].weight)
    assert torch.equal(model[1].weight, twin[1].weight)


def test_parameters_that_are_not_stepped_stay():
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1))
    model[0].requires_grad_(False)
    before = model[0].weight.clone()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Langevin(optimizer, num_examples=10)
    step(model, optimizer)
    assert torch.equal(model[0].weight, before)


def test_it_stops_for_good_once_asked_to():
    model, answers = nn.Linear(3, 1), iter([False, True, False, False])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    noise = Langevin(optimizer, num_examples=10, until=lambda: next(answers))
    optimizer.param_groups[0]["lr"] = 0.1
    step(model, optimizer)
    twin = copy.deepcopy(model)
    plain = torch.optim.SGD(twin.parameters(), lr=0.1)
    for _ in range(3):
        step(model, optimizer)
        step(twin, plain)
    assert torch.equal(model.weight, twin.weight)
    assert not noise.active


def test_removed_means_no_noise():
    model = nn.Linear(3, 1)
    twin = copy.deepcopy(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Langevin(optimizer, num_examples=10).remove()
    step(model, optimizer)
    step(twin, torch.optim.SGD(twin.parameters(), lr=0.1))
    assert torch.equal(model.weight, twin.weight)


def test_its_generator_is_its_own_and_part_of_its_state():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    noise = Langevin(optimizer, num_examples=10, seed=5)
    state = torch.get_rng_state()
    step(model, optimizer)
    assert torch.equal(torch.get_rng_state(), state)
    checkpoint = copy.deepcopy((model.state_dict(), optimizer.state_dict(), noise.state_dict()))
    step(model, optimizer)
    expected = model.weight.clone()

    model = nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    noise = Langevin(optimizer, num_examples=10)
    for part, saved in zip((model, optimizer, noise), checkpoint, strict=True):
        part.load_state_dict(saved)
    step(model, optimizer)
    assert torch.equal(model.weight, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_noise_on_low_precision_parameters_is_refused(dtype):
    """Steps of 1e-3 on entries near 1 round to zero, and so does their noise."""
    low, full = nn.Parameter(torch.ones(2, dtype=dtype)), nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([low, full], lr=0.001)
    with pytest.raises(TypeError, match=f"rounds to zero on parameters of {str(dtype)[6:]}.*float32.*autocast"):
        Langevin(optimizer, num_examples=1000)
    Langevin(optimizer, num_examples=1000, parameters=[full])
    low.requires_grad_(False)
    Langevin(optimizer, num_examples=1000)


def test_a_model_that_is_converted_later_is_noticed():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Langevin(optimizer, num_examples=10)
    model.bfloat16()
    model(torch.ones(4, 3, dtype=torch.bfloat16)).sum().backward()
    with pytest.raises(TypeError, match="rounds to zero"):
        optimizer.step()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: Langevin(torch.optim.RMSprop([p]), 10), "SGD, Adam and AdamW. Got RMSprop"),
        (lambda p: Langevin(torch.optim.SGD([p], lr=1), 0), "`num_examples` should be .* Got 0"),
        (lambda p: Langevin(torch.optim.SGD([p], lr=1), 5, temperature=-1), "`temperature` should be .* Got -1"),
        (
            lambda p: Langevin(torch.optim.SGD([p], lr=1), 5, parameters=[torch.ones(1)]),
            "1 of the 1 given `parameters`",
        ),
    ],
)
def test_errors_say_what_was_given(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make(nn.Parameter(torch.ones(2)))
