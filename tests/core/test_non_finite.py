"""A task that is not finite counts as missing: the others are updated, and a weight of 0 keeps it out of the sum."""

import warnings

import pytest
import torch
from core.laws import EVERY_METHOD
from core.test_reweighter import TASKS, Net, train
from torch.testing import assert_close

from arml import ARML, TAWT, AuxiNash, CosineSim, Fixed, GatedARML, GradNorm, Reweighter
from arml.packing import unpack

every_method = pytest.mark.parametrize("method", EVERY_METHOD, ids=repr)
by_gradients = pytest.mark.parametrize(
    "method", [ARML(), GatedARML(), GradNorm(), CosineSim(), TAWT(), AuxiNash()], ids=repr
)
BAD = [float("nan"), float("inf")]


def infinite_slope(net):
    """0, whose derivative is infinite."""
    return (net.trunk[0].weight * 0).sum().sqrt()


@every_method
@pytest.mark.parametrize("bad", BAD)
def test_a_task_that_is_not_finite_counts_as_missing(method, bad):
    net = Net()
    first, second = Reweighter(method, TASKS, net.trunk, every=1), Reweighter(method, TASKS, net.trunk, every=1)
    for reweighter in (first, second):
        reweighter(*net.losses())
        reweighter._rounds.expect(torch.tensor([True, True, True, False, True]))  # waits for no task but a, b, d
    for attempt in range(2):
        main, aux = net.losses()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loss = first(main, {**aux, "c": aux["c"] * bad})
        warned = attempt == 0 and method.needs().losses  # weights that never change cannot be spoilt
        assert [str(w.message).split(" is not")[0] for w in caught] == ["The loss or gradient of 'c'"] * warned
        assert bool(loss.isfinite()) == (first.weights["c"] == 0)
        del aux["c"]
        second(main, aux)
        assert first.weights == second.weights


@every_method
@pytest.mark.parametrize("bad", BAD)
def test_main_that_is_not_finite_leaves_the_weights_alone(method, bad):
    net = Net()
    reweighter = Reweighter(method, TASKS, net.trunk, every=1)
    train(net, reweighter, 2)
    before = unpack(reweighter.get_extra_state())
    main, aux = net.losses()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        loss = reweighter(main * bad, aux)
    assert not bool(loss.isfinite()) or reweighter.main_weight == 0
    if reweighter._measures_gradients():
        after = unpack(reweighter.get_extra_state())
        assert torch.equal(after["weights"], before["weights"])
        pairs = [(part, after["memory"][name]) for name, part in before["memory"].items()]
        assert all(torch.equal(a.nan_to_num(7), b.nan_to_num(7)) for a, b in pairs)


@by_gradients
def test_a_gradient_that_is_not_finite_is_traced_to_its_task(method):
    """sqrt has a finite value and an infinite slope at 0."""
    net = Net()
    found, expected = Reweighter(method, TASKS, net.trunk, every=1), Reweighter(method, TASKS, net.trunk, every=1)
    main, aux = net.losses()
    with pytest.warns(UserWarning, match=r"The loss or gradient of 'b' is not finite") as caught:
        found(main, {**aux, "b": aux["b"] + infinite_slope(net)})
    assert len(caught) == 1
    expected._rounds.expect(torch.tensor([True, True, False, True, True]))
    expected(main, {name: loss for name, loss in aux.items() if name != "b"})
    assert_close(found.weights, expected.weights)
    assert found.weights["b"] == 1
    assert set(found.weights.values()) != {1.0}


@pytest.mark.parametrize("of", ["loss", "gradient"])
@by_gradients
def test_a_task_that_is_infinite_in_nine_of_ten_steps_does_not_stop_the_others(method, of):
    net = Net()
    reweighter = Reweighter(method, TASKS, net.trunk, every=1, convergence=None)
    updates, last = 0, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for step in range(100):
            main, aux = net.losses()
            if step % 10:
                aux["c"] = aux["c"] * float("inf") if of == "loss" else aux["c"] + infinite_slope(net)
            reweighter(main, aux)
            updates += reweighter.signals is not last
            last = reweighter.signals
    assert updates == 100
    assert reweighter.signals.present.tolist() == [True, True, True, False, True]


def test_round_robin_goes_on_without_a_task_that_is_infinite():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1, convergence=None)
    updates, last = 0, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for step in range(40):
            main, aux = net.losses()
            name = TASKS[step % 4]
            reweighter(main, {name: aux[name] * (float("inf") if name == "c" else 1)})
            updates += reweighter.signals is not last
            last = reweighter.signals
    assert updates == 9  # the first round waits for a second c
    assert reweighter.weights["c"] == 1
    assert len(set(reweighter.weights.values())) == 4


@pytest.mark.parametrize("closure_only", [False, True])
def test_closures_leave_the_task_out_as_well(closure_only):
    net = Net()

    def losses():
        main, aux = net.losses()
        return main, {**aux, "c": aux["c"] * float("nan")}

    by_closure, by_graph = Reweighter(ARML(), TASKS, net.trunk), Reweighter(ARML(), TASKS, net.trunk)
    with pytest.warns(UserWarning, match="of 'c' is not finite") as caught:
        by_closure(*(() if closure_only else losses()), closure=losses)
    assert len(caught) == 1  # and none about another engine
    with pytest.warns(UserWarning, match="of 'c' is not finite"):
        by_graph(*losses())
    assert_close(by_closure.weights, by_graph.weights)
    assert set(by_graph.weights.values()) != {1.0}


@pytest.mark.parametrize("num_tasks", [2, 9])
@pytest.mark.parametrize("bad", BAD)
def test_a_task_of_weight_0_does_not_spoil_the_sum(num_tasks, bad):
    """0 x NaN is NaN, in the sum and in every gradient."""
    tasks = [f"task {i}" for i in range(num_tasks)]
    net = Net(tasks)
    reweighter = Reweighter(Fixed([1.0] * (num_tasks - 1) + [0.0]), tasks, net.trunk)
    main, aux = net.losses()
    expected = main + sum(list(aux.values())[:-1])
    loss = reweighter(main, {**aux, tasks[-1]: aux[tasks[-1]] * bad})
    assert_close(loss, expected)
    loss.backward(retain_graph=True)
    found = {name: p.grad.clone() for name, p in net.named_parameters() if p.grad is not None}
    net.zero_grad()
    expected.backward()
    assert_close(found, {name: p.grad for name, p in net.named_parameters() if p.grad is not None})


def test_a_task_with_a_weight_still_spoils_the_sum():
    """Your own handling, or GradScaler's, must see it."""
    net = Net()
    reweighter = Reweighter(Fixed([1.0, 1.0, 1.0, 1.0]), TASKS, net.trunk)
    main, aux = net.losses()
    assert bool(reweighter(main, {**aux, "b": aux["b"] * float("nan")}).isnan())


def test_a_task_of_weight_0_that_is_finite_stays_connected():
    """DistributedDataParallel waits for the gradient of every parameter."""
    net = Net()
    reweighter = Reweighter(Fixed([1.0, 0.0, 1.0, 1.0]), TASKS, net.trunk)
    reweighter(*net.losses()).backward()
    assert torch.equal(net.heads["b"].weight.grad, torch.zeros(1, 4, dtype=torch.float64))
