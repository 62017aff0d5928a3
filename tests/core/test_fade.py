"""The share of the auxiliary part over the run."""

import io
import math

import pytest
import torch
from core.laws import EVERY_METHOD
from core.test_overhead import Count, nodes, problem, sum_by_hand
from core.test_reweighter import TASKS, Net, train
from torch.testing import assert_close

from arml import ARML, Convergence, CosineFade, Fixed, LinearFade, MainOnlyAtEnd, Reweighter, Uniform
from arml.packing import pack, unpack

every_method = pytest.mark.parametrize("method", EVERY_METHOD, ids=repr)


@pytest.mark.parametrize(
    ("fade", "expected"),
    [
        (LinearFade(4), {0: 1, 1: 0.75, 3: 0.25, 4: 0, 9: 0}),
        (LinearFade(6, start=2), {0: 1, 2: 1, 3: 0.75, 6: 0}),
        (LinearFade(0.75, total=8, start=0.25), {2: 1, 4: 0.5, 6: 0, 8: 0}),
        (LinearFade(1.0, total=10), {0: 1, 9: 0.1, 10: 0}),
        (LinearFade(0.7, total=10), {6: 1 / 7, 7: 0}),
        (CosineFade(4), {0: 1, 1: (1 + math.sqrt(0.5)) / 2, 2: 0.5, 4: 0, 5: 0}),
        (CosineFade(0.5, total=8, start=2), {2: 1, 3: 0.5, 4: 0}),
        (MainOnlyAtEnd(3), {0: 1, 2: 1, 3: 0, 4: 0}),
        (MainOnlyAtEnd(0.7, total=10), {6: 1, 7: 0}),
    ],
    ids=repr,
)
def test_shares_a_person_can_check(fade, expected):
    assert_close({step: fade.share(step) for step in expected}, {step: float(s) for step, s in expected.items()})
    assert all(fade.share(step) == s for step, s in expected.items() if s in (0, 1))  # to the last bit


@pytest.mark.parametrize("fade", [LinearFade(7, start=2), CosineFade(7, start=2), MainOnlyAtEnd(7)], ids=repr)
def test_shares_never_rise(fade):
    shares = [fade.share(step) for step in range(12)]
    assert shares == sorted(shares, reverse=True)
    assert (shares[0], shares[7]) == (1, 0)


@pytest.mark.parametrize("kind", [LinearFade, CosineFade, MainOnlyAtEnd])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"until": 0.8}, "`until` is a fraction, so `total` must be given. Got 0.8 and total=None. Pass the number"),
        ({"until": 1.5, "total": 9}, r"`until` should be .* a fraction in \(0, 1\] of `total`. Got 1.5"),
        ({"until": 500.0}, "`until` should be .* Got 500.0. Steps are integers: write 500, not 500.0"),
        ({"until": 0}, "`until` should be a step of at least 1"),
        ({"until": 0.0, "total": 9}, "`until` should be .* Got 0.0"),
        ({"until": 0.5, "total": 0}, "`total` should be a whole number of steps of at least 1. Got 0"),
        ({"until": 0.5, "total": 10.0}, "`total` should be a whole number of steps of at least 1. Got 10.0"),
    ],
)
def test_wrong_settings_get_an_error_that_helps(kind, settings, message):
    with pytest.raises(ValueError, match=f"{kind.__name__}: {message}"):
        kind(**settings)


@pytest.mark.parametrize("kind", [LinearFade, CosineFade])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"until": 5, "start": 5}, "`start` should come before `until`. Got start=5 and until=5"),
        ({"until": 0.5, "total": 10, "start": 0.5}, "Got start=0.5 and until=0.5"),
        ({"until": 5, "start": 0.1}, "`start` is a fraction, so `total` must be given"),
        ({"until": 5, "start": -1}, "`start` should be a step"),
    ],
)
def test_wrong_starts_get_an_error_that_helps(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        kind(**settings)


@every_method
def test_the_share_multiplies_the_auxiliary_part_only(method):
    net = Net()
    settings = {"every": 1, "fade": LinearFade(4), "aux_scale": 0.5, "units": False}
    reweighter = Reweighter(method, TASKS, net.trunk, **settings)
    for share in (1, 0.75, 0.5, 0.25, 0, 0):
        assert reweighter.share == share
        main, aux = net.losses()
        loss = reweighter(main, aux)
        part = sum(reweighter.weights[name] * aux[name] for name in TASKS)
        assert_close(loss, reweighter.main_weight * main + share * 0.5 * part)


@every_method
def test_what_is_measured_is_not_faded(method):
    """On a network that stands still, weights are learned as without a fade, until the share is 0."""
    net = Net()
    plain = Reweighter(method, TASKS, net.trunk, every=2, convergence=None)
    faded = Reweighter(method, TASKS, net.trunk, every=2, convergence=None, fade=CosineFade(6))
    for step in range(9):
        plain(*net.losses())
        faded(*net.losses())
        assert (faded.weights == plain.weights) or step > 5


def test_without_a_share_nothing_is_measured():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1, convergence=None, fade=MainOnlyAtEnd(3))
    train(net, reweighter, 3)
    weights, signals = reweighter.weights, reweighter.signals
    train(net, reweighter, 3)
    assert reweighter.signals is signals
    assert reweighter.weights == weights


def test_steps_are_calls_in_training_mode_with_gradients():
    net = Net()
    reweighter = Reweighter(Uniform(), TASKS, net.trunk, fade=LinearFade(10))
    reweighter(*net.losses())
    reweighter.eval()
    reweighter(*net.losses())
    reweighter.train()
    with torch.no_grad():
        main, aux = net.losses()
        assert_close(reweighter(main, aux), main + 0.9 * sum(aux.values()))
    assert reweighter.share == 0.9
    with pytest.raises(ValueError, match="Unknown auxiliary task"):
        reweighter(main, {"e": main})
    assert reweighter.share == 0.9


def test_steps_go_on_after_convergence_and_after_a_reset():
    net = Net()
    fade = LinearFade(10)
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1, convergence=Convergence(at_most=2), fade=fade)
    train(net, reweighter, 5)
    assert reweighter.converged
    assert reweighter.share == 0.5
    reweighter.reset()
    assert reweighter.share == 0.5
    train(net, reweighter, 1)
    assert reweighter.share == 0.4


@pytest.mark.parametrize("saved_after", [1, 4, 7])
def test_a_checkpoint_resumes_exactly(saved_after):
    def start():
        torch.manual_seed(0)
        net = Net()
        reweighter = Reweighter(ARML(), TASKS, net.trunk, every=2, fade=CosineFade(6))
        return net, reweighter, torch.optim.Adam(net.parameters())

    net, reweighter, optimizer = start()
    train(net, reweighter, saved_after, optimizer)
    file = io.BytesIO()
    torch.save([part.state_dict() for part in (net, reweighter, optimizer)], file)
    file.seek(0)
    resumed = start()
    for part, state in zip(resumed, torch.load(file), strict=True):
        part.load_state_dict(state)
    assert resumed[1].share == reweighter.share
    train(net, reweighter, 4, optimizer)
    train(*resumed[:2], 4, resumed[2])
    assert resumed[1].weights == reweighter.weights
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), resumed[0].parameters(), strict=True))


def test_a_checkpoint_without_steps_begins_from_its_calls():
    net = Net()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, fade=LinearFade(10))
    train(net, reweighter, 3)
    saved = unpack(reweighter.get_extra_state())
    assert saved.pop("steps") == 3
    resumed = Reweighter(ARML(), TASKS, net.trunk, fade=LinearFade(10))
    resumed.set_extra_state(pack(saved))
    assert resumed.share == reweighter.share == 0.7


def test_a_run_without_a_fade_counts_its_steps_for_one_that_is_added_later():
    net = Net()
    reweighter = Reweighter(Uniform(), TASKS, net.trunk)
    train(net, reweighter, 3)
    resumed = Reweighter(Uniform(), TASKS, net.trunk, fade=LinearFade(10))
    resumed.load_state_dict(reweighter.state_dict())
    assert resumed.share == 0.7


@pytest.mark.parametrize("share", [0.5, 0.0])
@pytest.mark.parametrize("num_tasks", [1, 2, 3, 5, 7])
def test_a_faded_step_costs_no_more_than_the_sum_by_hand(num_tasks, share):
    theta, main, aux = problem(num_tasks)
    reweighter = Reweighter(Fixed([1.5] * num_tasks), list(aux), [theta], fade=LinearFade(2))
    reweighter._steps = round(2 - 2 * share)
    with Count() as ours:
        found = reweighter(main, aux)
    with Count() as by_hand:
        expected = sum_by_hand(main, aux)
    assert nodes(found, [main, *aux.values()]) <= max(5, nodes(expected, [main, *aux.values()]))
    if num_tasks <= 5:
        assert len(ours.operations) <= len(by_hand.operations)


def test_a_step_without_a_share_reads_no_number():
    """Reading one would wait for the accelerator."""

    class Reads(Count):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            assert "local_scalar" not in str(func)
            return func(*args, **(kwargs or {}))

    theta, main, aux = problem(3)
    reweighter = Reweighter(ARML(), list(aux), [theta], fade=MainOnlyAtEnd(1))
    reweighter(main, aux)
    with Reads():
        reweighter(main, aux).backward()


def test_training_on_auxiliary_tasks_alone_cannot_be_faded_out():
    with pytest.raises(ValueError, match=r"With train_on_main=False .* Got fade=LinearFade\(until=4"):
        Reweighter(ARML(), TASKS, Net().trunk, train_on_main=False, fade=LinearFade(4))


@pytest.mark.parametrize("bad", [1.0, float("nan")])
def test_without_a_share_auxiliary_tasks_stay_connected_but_give_no_gradient(bad):
    """DistributedDataParallel waits for every parameter."""
    net = Net()
    reweighter = Reweighter(Uniform(), TASKS, net.trunk, fade=MainOnlyAtEnd(1))
    train(net, reweighter, 1)
    net.zero_grad()
    weight, reached = net.heads["b"].weight, []
    main, aux = net.losses()
    weight.view_as(weight).grad_fn.next_functions[0][0].register_hook(lambda *_: reached.append(True))  # as DDP does
    loss = reweighter(main, aux | {"b": bad * aux["b"]})
    assert_close(loss, main)
    loss.backward(retain_graph=True)
    assert reached == [True]
    assert weight.grad is None
    found = net.trunk[0].weight.grad.clone()
    net.zero_grad()
    main.backward()
    assert torch.equal(found, net.trunk[0].weight.grad)


def test_a_batch_without_main_labels_trains_nothing_once_the_share_is_0():
    net = Net()
    reweighter = Reweighter(Uniform(), TASKS, net.trunk, fade=MainOnlyAtEnd(1))
    train(net, reweighter, 1)
    net.zero_grad()
    reweighter(None, net.losses()[1]).backward()
    assert all(p.grad is None for p in net.parameters())
