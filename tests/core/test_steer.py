"""A held-out loss takes the place of the main loss in all that is measured, and in nothing else."""

import warnings

import pytest
import torch
from core.laws import EVERY_METHOD
from core.test_reweighter import TASKS, Net
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml import ARML, CosineSim, GatedARML, Reweighter, Uniform

every_method = pytest.mark.parametrize("method", EVERY_METHOD, ids=repr)
by_gradients = pytest.mark.parametrize("method", [ARML(), GatedARML(), CosineSim()], ids=repr)


def held_out_loss(net, seed=1):
    """The main loss on other examples, with other labels."""
    generator = torch.Generator().manual_seed(seed)
    x, y = torch.randn(9, 3, generator=generator).double(), torch.randn(9, 1, generator=generator).double()
    return F.mse_loss(net.heads["main"](net.trunk(x)), y)


def pair(net, method=ARML(), **settings):  # noqa: B008 -- frozen
    return [Reweighter(method, TASKS, net.trunk, **{"every": 1, "convergence": None, **settings}) for _ in range(2)]


@every_method
def test_weights_are_those_of_a_main_loss_in_its_place(method):
    net = Net()
    found, expected = pair(net, method)
    for seed in range(4):
        main, aux = net.losses()
        loss = found(main, aux, steer=held_out_loss(net, seed))
        expected(held_out_loss(net, seed), aux)
        assert_close(found.weights, expected.weights, rtol=1e-12, atol=1e-12)
        part = sum(found.factors[name] * aux[name] for name in TASKS)
        assert_close(loss, found.main_weight * main + part)


@every_method
def test_the_main_loss_itself_steers_as_if_nothing_were_given(method):
    net = Net()
    found, expected = pair(net, method)
    for _ in range(3):
        main, aux = net.losses()
        assert torch.equal(found(main, aux, steer=main), expected(main, aux))
        assert torch.equal(found.get_extra_state(), expected.get_extra_state())


def test_it_is_seen_in_the_signals():
    net = Net()
    reweighter, _ = pair(net)
    reweighter(*net.losses(), steer=held_out_loss(net))
    assert float(reweighter.signals.losses[0]) == float(held_out_loss(net).detach())


@by_gradients
def test_it_steers_where_the_batch_has_no_main_labels(method):
    net = Net()
    found, expected = pair(net, method)
    _, aux = net.losses()
    loss = found(None, aux, steer=held_out_loss(net))
    expected(held_out_loss(net), aux)
    assert found.weights == expected.weights
    assert_close(loss, sum(found.weights[name] * aux[name] for name in TASKS))


@by_gradients
def test_where_it_is_missing_the_main_loss_is_measured(method):
    net = Net()
    found, expected = pair(net, method)
    for seed in range(4):
        main, aux = net.losses()
        found(main, aux, steer=held_out_loss(net, seed) if seed % 2 else None)
        expected(held_out_loss(net, seed) if seed % 2 else main, aux)
        assert found.weights == expected.weights


def test_it_steers_rounds_of_batches_with_some_of_the_tasks():
    net = Net()
    found, expected = pair(net, ARML())
    for step in range(8):
        main, aux = net.losses()
        some = {name: aux[name] for name in TASKS[step % 4 :: 2]}
        found(main if step % 3 else None, some, steer=held_out_loss(net, step))
        expected(held_out_loss(net, step), some)
    assert found.weights == expected.weights
    assert set(found.weights.values()) != {1.0}


@by_gradients
@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_held_out_loss_that_is_not_finite_is_not_measured(method, bad):
    net = Net()
    reweighter, _ = pair(net, method)
    main, aux = net.losses()
    with pytest.warns(UserWarning, match="The loss or gradient of 'steer' is not finite"):
        reweighter(main, aux, steer=bad * held_out_loss(net))
    loss = reweighter(main, aux, steer=bad * held_out_loss(net))  # no second warning: it would be an error
    assert reweighter.signals is None
    assert_close(loss, main + sum(aux.values()))
    reweighter(main, aux, steer=held_out_loss(net))
    assert reweighter.signals is not None


def test_a_main_loss_that_is_not_finite_is_not_measured_next_to_it():
    net = Net()
    found, expected = pair(net)
    main, aux = net.losses()
    assert not bool(found(float("nan") * main, aux, steer=held_out_loss(net)).isfinite())
    expected(held_out_loss(net), aux)
    assert found.weights == expected.weights


def test_calls_that_measure_nothing_ignore_it():
    net = Net()
    found, expected = pair(net, every=3)
    with_update = []
    for seed in range(7):
        main, aux = net.losses()
        with_update.append(found.update_due)
        found(main, aux, steer=held_out_loss(net, seed) if found.update_due else None)
        expected(main, aux, steer=held_out_loss(net, seed))
        assert found.weights == expected.weights
    assert with_update == [True, False, False, True, False, False, True]
    found.eval()
    with torch.no_grad():
        found(main, aux, steer=held_out_loss(net))
    assert found.weights == expected.weights


def test_an_update_is_never_due_where_nothing_is_learned():
    assert not Reweighter(Uniform(), TASKS, Net().trunk).update_due


def test_a_loss_outside_the_shared_parameters_is_reported_by_its_name():
    net, other = Net(), nn.Parameter(torch.ones(()))
    reweighter, _ = pair(net)
    with pytest.warns(UserWarning, match="The loss of 'steer' does not depend on the shared parameters"):
        reweighter(*net.losses(), steer=other * 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r, n: r(steer=n.losses()[0], closure=n.losses), "`steer` cannot be combined with a closure"),
        (lambda r, n: r(*n.losses(), steer=n.losses()[0].detach()), r"Loss 'steer' has no graph"),
        (lambda r, n: r(*n.losses(), steer=0.5), "Loss 'steer' should be a tensor .* Got 0.5"),
        (lambda r, n: r(steer=n.losses()[0]), "No loss was given"),
    ],
)
def test_wrong_calls_get_an_error_that_helps(call, message):
    net = Net()
    with pytest.raises((ValueError, TypeError), match=message):
        call(Reweighter(ARML(), TASKS, net.trunk), net)


def test_shared_noise_looks_like_agreement_until_one_side_is_held_out():
    """Main and auxiliary gradient are the same noise of n examples: their product is d / n on average, not 0."""
    d, n, calls = 5, 10, 200
    theta = nn.Parameter(torch.zeros(d, dtype=torch.float64))
    found = {}
    for holds_out in (False, True):
        reweighter = Reweighter(CosineSim(), ["a"], [theta], every=1, convergence=None)
        products = []
        for _ in range(calls):
            batch, other = (torch.randn(n, d, dtype=torch.float64).mean(0) @ theta for _ in range(2))
            reweighter(batch, {"a": 1 * batch}, steer=other if holds_out else None)
            products.append(float(reweighter.signals.alignment[0, 1]))
        found[holds_out] = sum(products) / calls
    assert found[False] == pytest.approx(d / n, rel=0.2)
    assert abs(found[True]) < 4 * d**0.5 / n / calls**0.5  # 4 standard errors


def test_it_changes_nothing_else_that_is_trained():
    """Only the returned loss reaches the optimiser: the held-out examples leave no gradient."""
    net = Net()
    reweighter = Reweighter(Uniform(), TASKS, net.trunk)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reweighter(*net.losses(), steer=held_out_loss(net)).backward()
    found = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    main, aux = net.losses()
    (main + sum(aux.values())).backward()
    assert all(torch.allclose(p.grad, g) for p, g in zip(net.parameters(), found, strict=True))
