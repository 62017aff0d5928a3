"""Weights for tasks that have proven to agree."""

import math

import pytest
import torch
from core.test_reweighter import TASKS, Net
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from arml import Agreement, Convergence, Reweighter, Signals
from arml.methods._evidence import SEEN, log_odds
from arml.methods._trial import BLIND, PASSED, TRIAL
from arml.methods.agreement import PEERS


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64)


def follow(method, products, same_outputs, lengths=None):
    """The weights after updates with products of gradients in the rows of ``products``, and lengths of the main one."""
    state = method.init(torch.zeros(1 + len(same_outputs), dtype=torch.float64))
    for i, row in enumerate(products):
        length = 1.0 if lengths is None else lengths[i]
        signals = Signals(
            numbers(*[1.0] * (1 + len(row))),
            length * numbers(length, *row)[None],
            same_outputs=torch.tensor(same_outputs),
        )
        weights, state = method.update(state, signals)
    return weights


def judge(method, p, nu, own, peers=None, *, updates=8, sight=9.0, alternatives=10, then_own=None):
    """Weights and memory after updates with these answers of competing tasks, the same at each, and nothing else.

    ``peers`` is what any two tasks answer for each other, where the chance is 0.1. From the tenth update on, tasks
    answer their own examples with ``then_own``.
    """
    state = method.init(torch.zeros(1 + len(p), dtype=torch.float64))
    fit = torch.zeros(len(p), len(p), dtype=torch.float64) if peers is None else torch.tensor(peers).double()
    for i in range(updates):
        own = own if then_own is None or i < 9 else then_own
        signals = Signals(
            numbers(*[1.0] * (1 + len(p))),
            transfer=torch.stack([numbers(0.1 * sight, *p), numbers(0.1, *nu)]),
            own_transfer=numbers(0, *own),
            alternatives=torch.full((1 + len(p),), alternatives),
            peers=torch.stack([fit, torch.full_like(fit, 0.1)]),
        )
        weights, state = method.update(state, signals)
    return weights[1:].tolist(), state


HALF = [(1, -1), (1, 1), (1, 1), (1, 1)]
"""Samples r of two tasks: the first has m = 1 and e = 0, the second m = 0.5 and e^2 = (1 - 0.25) / 3 = 0.25.

So z = m / e is unlimited and 1, and the log odds z |z| / 2 are unlimited and 0.5.
"""


@pytest.mark.parametrize(
    ("method", "same_outputs", "expected"),
    [
        # b = (1, 0.5 - 0.25 + 0.25).
        (Agreement(doubt=0.25, warmup=2), (True, True), (1 / 1.5, 0.5 / 1.5)),
        # b = (1, 0).
        (Agreement(doubt=0.5, warmup=2), (True, True), (1, 0)),
        (Agreement(doubt=0.5, warmup=2, share=3), (True, True), (3, 0)),
        # With heads of their own, signs say nothing.
        (Agreement(warmup=2), (False, False), (1, 1)),
        (Agreement(warmup=2, own_head=3), (False, False), (3, 3)),
        # Each kind by its own rule: alone, the second is worth b = 0.5 of the share.
        (Agreement(doubt=0.25, warmup=2), (False, True), (1, 0.5)),
        (Agreement(doubt=0.25, warmup=2), (True, False), (1, 1)),
        # Too few samples: gradients need twice as many as answers.
        (Agreement(warmup=3), (True, True), (0, 0)),
        (Agreement(warmup=3), (True, False), (0, 1)),
    ],
)
def test_golden_values_by_gradients(method, same_outputs, expected):
    assert_close(follow(method, HALF, same_outputs), numbers(1, *expected))


def test_golden_values_by_answers():
    """The log odds of p = 0.3 by chances of 0.1 are 3.785 for a task that answers its own examples with 0.5."""
    e = float(log_odds(numbers(0.3), numbers(0.1), numbers(0.5)))
    assert e == pytest.approx(3.7851, abs=1e-4)
    assert judge(Agreement(doubt=3.5), (0.3, 0.0), (0.1, 0.1), (0.5, 0.5))[0] == pytest.approx([e - 3.25, 0])
    assert judge(Agreement(doubt=3.8), (0.3, 0.0), (0.1, 0.1), (0.5, 0.5))[0] == [0, 0]
    assert judge(Agreement(), (0.3, 0.3), (0.1, 0.1), (0.5, 0.5))[0] == [0.5, 0.5]
    assert judge(Agreement(), (0.3, 0.3), (0.1, 0.1), (0.5, 0.0001))[0] == [1, 0]
    assert judge(Agreement(), (-0.3, -0.9), (0.1, 0.1), (0.5, 0.5))[0] == [0, 0]
    assert judge(Agreement(), (0.9, 0.9), (0.1, 0.1), (0.5, 0.5), updates=7)[0] == [0, 0]


def test_peers_are_judged_together():
    """The first two tasks answer for each other: they have p = 0.2 on average, and 2 ln 2 for agreeing with another."""
    fit = [[0.0, 0.3, 0.0], [0.3, 0.0, 0.0], [0.0, 0.0, 0.0]]
    p, nu, own = (0.35, 0.05, 0.2), (0.1, 0.1, 0.1), (0.5, 0.5, 0.5)
    together = float(log_odds(numbers(0.2), numbers(0.1), numbers(0.5))) + 2 * math.log(2)
    b = together - 2.5 + 0.25
    assert judge(Agreement(doubt=2.5), p, nu, own, fit)[0] == pytest.approx([b / 2, b / 2, 0])
    assert judge(Agreement(doubt=2.5), p, nu, own)[0] == [1, 0, 0]


@pytest.mark.parametrize(
    ("fit", "own", "are_peers"),
    [
        (0.2 + 0.01, 0.5, True),
        (PEERS * 0.5 - 0.01, 0.5, False),  # each knows more about itself
        (0.1 - 0.01, 0.1, False),  # no better than chance
        (0.1 + 0.01, 0.1, True),
    ],
)
def test_what_makes_peers(fit, own, are_peers):
    _, state = judge(Agreement(), (0.0, 0.0), (0.1, 0.1), (own, own), [[0.0, fit], [fit, 0.0]])
    found = state.meetings().peers(numbers(own, own), PEERS)
    assert found.tolist() == [[False, are_peers], [are_peers, False]]


def test_a_task_that_knows_nothing_about_itself_is_nobodys_peer():
    """A random task that fits a right one by chance neither shares its proof nor spoils it."""
    fit, p, nu = [[0.0, 0.2], [0.2, 0.0]], (0.35, 0.0), (0.1, 0.1)
    assert (
        judge(Agreement(), p, nu, (0.5, 0.5 / 3 - 0.01), fit)[0] == judge(Agreement(), p, nu, (0.5, 0.1))[0] == [1, 0]
    )
    both = judge(Agreement(), p, nu, (0.5, 0.5 / 3 + 0.01), fit)[0]
    assert both[0] == both[1] > 0
    assert judge(Agreement(), p, nu, (0.5, -0.1), fit)[0] == [1, 0]


def test_the_last_meetings_count_most():
    state = Agreement().init(torch.zeros(3, dtype=torch.float64)).meetings()
    chance = torch.full((2, 2), 0.1, dtype=torch.float64)
    for p in (0.0, 1.0):
        state = state.add(p * torch.ones_like(chance), chance)
    assert_close(state.fit / state.met, torch.full_like(chance, 1 / 1.9))
    assert_close(state.fit_chance / state.met, chance)
    again = state.add(torch.ones_like(chance), torch.zeros_like(chance))  # nothing to compare
    assert_close(again, state)


def test_answers_are_compared_until_a_task_is_believed():
    """The first task is believed when it is first judged, the second one never, the third has nothing to compare."""
    _, state = judge(Agreement(warmup=2), (0.3, 0.0, 0.0), (0.1, 0.1, 0.0), (0.5, 0.5, 0.5), updates=5)
    assert_close(state.compared, numbers(2, 5, 0))
    assert_close(state.transfer, numbers(2 * 0.3, 0, 0))
    assert_close(state.chance, numbers(0.2, 0.5, 0))
    assert_close(state.belief, numbers(1, 0, 0))
    assert state.trained.tolist() == [True, False, False]


def test_a_belief_does_not_fall_while_half_of_its_evidence_remains():
    """Evidence of 2 gives b = 2 - 1.75 + 0.25; it took 1.75, of which half is 0.875."""
    e = numbers(1.7, 2.0, 1.8, 0.88, 0.87, 1.7)
    judged, b, found = torch.tensor([True]), numbers(0), []
    for value in e:
        b = Agreement(doubt=1.75)._believe(value[None], judged, b)
        found.append(float(b))
    assert found == pytest.approx([0, 0.5, 0.5, 0.5, 0, 0])


def ask(method, answers, *, same_outputs=(False, False)):
    """The weights after updates in which the tasks answer their own next examples with these correlations."""
    state = method.init(torch.zeros(1 + len(same_outputs), dtype=torch.float64))
    for row in answers:
        equal = torch.ones(1 + len(row), dtype=torch.float64)
        weights, state = method.update(
            state, Signals(equal, equal[None], same_outputs=torch.tensor(same_outputs), own_transfer=numbers(0, *row))
        )
    return weights[1:]


def test_what_features_cannot_answer_counts_less():
    """Two answers by hand: (4 * 0.2 + 0.9 * 0.1 + 0.05) / (4 + 0.9 + 1) = 0.15932, a share of 0.7966 of 0.2."""
    found = ask(Agreement(), [(0.1, 0.5), (0.05, 0.5)])
    assert_close(found, numbers(((0.8 + 0.9 * 0.1 + 0.05) / 5.9 / SEEN) ** 2, 1.0))
    assert float(found[0]) == pytest.approx(0.7966**2, abs=1e-4)


@pytest.mark.parametrize(("first", "then", "least", "most"), [(0.0001, 0.0001, 0.05, 0.1), (0.0001, 0.3, 0.95, 1.0)])
def test_a_task_that_becomes_learnable_counts_in_full(first, then, least, most):
    """A coin keeps the little weight that four samples of good faith leave it; a hard task gets its weight back."""
    coin = ask(Agreement(), [(first, 0.5)] * 20 + [(then, 0.5)] * 20)
    assert least <= coin[0] <= most
    assert coin[1] == 1


def test_answers_worse_than_chance_count_nothing():
    assert ask(Agreement(), [(-0.9, 0.5)] * 20)[0] == 0


def test_what_cannot_be_asked_counts_in_full():
    assert_close(ask(Agreement(), [(0.0, 0.0)] * 20), numbers(1, 1))


def blind(own=(0.1, 0.1), fit=0.0, p=(0.0, 0.0), *, share=1.0, **settings):
    """The weights of two competing tasks that answer for themselves by ``own`` and for each other by ``fit``."""
    settings = {"sight": 0.0, "updates": 9, **settings}
    return judge(Agreement(share=share), p, (0.1, 0.1), own, [[0.0, fit], [fit, 0.0]], **settings)[0]


def test_blind_all_tasks_are_on_trial_from_the_first_step_on():
    assert blind(updates=1) == [1, 1]
    assert blind(updates=1, share=3) == [3, 3]
    assert blind(updates=8 + TRIAL - 1) == [1, 1]
    assert blind(p=(-0.35, 0.5)) == [1, 1]


def test_a_trial_ends_when_features_answer_for_a_task():
    """Tasks that are peers by then keep their weight; all others are off for good, whatever their answers are."""
    before = sum(0.9**n for n in range(1, 10))
    mean = (0.1 * before + 0.9) / (before + 1)  # of the first ten updates, which is above SEEN
    for updates in (10, 40):
        assert blind(fit=PASSED * mean + 0.01, updates=updates, then_own=(0.9, 0.9)) == [1, 1]
        assert blind(fit=PASSED * mean - 0.01, p=(0.9, 0.9), updates=updates, then_own=(0.9, 0.9)) == [0, 0]
    assert blind(fit=0.9, updates=10, then_own=(0.15, 0.15)) == [1, 1]


def test_a_trial_ends_in_any_case():
    assert blind((0.15, 0.15), 0.12, updates=8 + TRIAL) == [1, 1]
    assert blind((0.15, 0.15), 0.08, p=(0.9, 0.9), updates=8 + TRIAL) == [0, 0]


def test_features_that_see_at_once_are_not_blind():
    """The trial ends with the warm-up, and answers are compared from then on."""
    sees, blind_features = (SEEN + 0.01,) * 2, (SEEN - 0.01,) * 2
    assert blind(sees, p=(0.9, 0.0), updates=7) == [1, 1]
    assert blind(sees, p=(0.9, 0.0), updates=8) == [1, 0]
    assert blind(blind_features, p=(0.9, 0.0), updates=8) == [1, 1]


def test_a_task_without_another_is_not_put_on_trial():
    assert judge(Agreement(), (0.0,), (0.1,), (0.1,), sight=0.0)[0] == [0]


def test_main_examples_that_agree_with_one_another_can_judge():
    assert blind(sight=BLIND - 0.01) == [1, 1]
    assert blind(sight=BLIND + 0.01) == [0, 0]


def test_of_two_answers_nothing_is_put_on_trial():
    assert blind(alternatives=2) == [0, 0]


def test_only_tasks_that_ask_the_same_are_put_on_trial():
    """A squared error on the outputs of a classifier may be tiny: brought to the size of the main loss, it explodes."""
    torch.manual_seed(0)
    net = nn.Linear(4, 3)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    reweighter = Reweighter(tasks=["views", "again"], shared=net)
    for _ in range(60):
        x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
        optimizer.zero_grad()
        aux = {name: (net(x) - net(x + 0.01)).square().mean() for name in ("views", "again")}
        reweighter(F.cross_entropy(net(x), y), aux).backward()
        optimizer.step()
    assert reweighter._memory.trust.tolist() == [0, 0]


def test_what_is_known_by_answers_stays_without_them():
    """Batches with some of the tasks each, for example, have no answers; gradients tell less."""
    _, state = judge(Agreement(), (0.3, 0.0), (0.1, 0.1), (0.5, 0.5))
    for _ in range(40):
        signals = Signals(numbers(1, 1, 1), numbers(1, -1, 1)[None])
        weights, state = Agreement().update(state, signals)
    assert weights.tolist() == [1, 1, 0]


@pytest.mark.parametrize("signs", [(1, 1, 1, 1), (1, -1, -1, 1)])
def test_tasks_with_heads_of_their_own_count_by_what_they_share_with_the_main_task(signs):
    """q^2 = 2 (9, 16) / 25 at each of n = 4 updates, and four samples of 1 before: rho^2 = (0.86, 1.14)."""
    rho = numbers(0.86, 1.14).sqrt()
    rows = [(3 * sign, 4) for sign in signs]
    assert_close(follow(Agreement(), rows, (False, False)), numbers(1, *(2 * rho / rho.sum())))
    # A competing task is not among those they are compared with.
    with_rival = follow(Agreement(own_head=2), [(*row, 100) for row in rows], (False, False, True))
    assert_close(with_rival[1:3], 4 * rho / rho.sum())


def test_a_long_gradient_is_not_relatedness():
    """Products of (3, 40) with lengths of (1, 10) are 3 and 4, as above; without lengths they are as given."""
    state = Agreement().init(torch.zeros(3, dtype=torch.float64))
    both = torch.tensor([False, False])
    for lengths, c in (((1, 1, 10), (3, 4)), ((1, 0, 0), (3, 40)), (None, (3, 40))):
        signals = Signals(
            numbers(1, 1, 1),
            numbers(1, 3, 40)[None],
            same_outputs=both,
            lengths=None if lengths is None else numbers(*lengths),
        )
        _, after = Agreement().update(state, signals)
        assert_close(after.relatedness, 2 * numbers(*c).square() / numbers(*c).square().sum())


def test_samples_compare_a_task_with_the_others():
    """r = sqrt(2) (3, 4) / 5, whatever the length of the gradients."""
    state = Agreement().init(torch.zeros(3, dtype=torch.float64))
    for factor in (1, 1e-6):
        _, after = Agreement().update(state, Signals(numbers(1, 1, 1), numbers(1, 3 * factor, 4 * factor)[None]))
        assert_close(after.values, math.sqrt(2) * numbers(0.6, 0.8))


def test_labels_learned_in_a_few_steps_do_not_keep_the_tasks_off():
    """As on features of a pretrained network: three samples count, all later ones weigh next to nothing."""
    rows, lengths = [(1, -1)] * 16, (1, 1, 1, *[1e-6] * 13)
    assert_close(follow(Agreement(), rows[:15], (True, True), lengths[:15]), numbers(1, 0, 0))
    assert_close(follow(Agreement(), rows, (True, True), lengths), numbers(1, 1, 0))


@pytest.mark.parametrize(("same_outputs", "expected"), [(True, [0] * 15 + [1, 1]), (False, [1] * 17)])
def test_competing_tasks_count_only_after_the_warmup(same_outputs, expected):
    assert [float(follow(Agreement(), [(1,)] * n, (same_outputs,))[1]) for n in range(1, 18)] == expected


def test_equal_weights_hold_until_gradients_are_compared():
    assert Agreement(share=3).init(torch.zeros(5)).weights.tolist() == [1, 0.75, 0.75, 0.75, 0.75]


def test_what_only_steers_leaves_the_sources_their_equal_weights_until_one_is_proven():
    """Otherwise nothing would be trained at all."""
    net = Net(["a", "b"])
    reweighter = Reweighter(Agreement(), ["a", "b"], net.trunk, train_on_main=False)
    answers = net.x.sum(1, keepdim=True)
    for expected in [{"a": 0.5, "b": 0.5}] * 7 + [None]:
        outputs = net.heads["main"](net.trunk(net.x))
        main, same, other = (F.mse_loss(outputs, y) for y in (answers, answers + 0.1, -answers))
        reweighter(main, {"a": same, "b": other})
        assert expected is None or reweighter.weights == expected
    assert reweighter.weights["a"] > 0.5
    assert reweighter.weights["b"] == 0


def test_chance_is_no_proof():
    """Of 200 competing tasks without evidence most are off; with heads of their own, all stay on."""
    products = torch.randn(30, 200, generator=torch.Generator().manual_seed(0)).tanh().tolist()
    competing = follow(Agreement(), products, (True,) * 200)[1:]
    assert 0.85 < (competing == 0).double().mean() < 1
    assert competing.sum() <= 1
    own = follow(Agreement(), products, (False,) * 200)[1:]
    assert own.min() > 0
    assert own.mean() == pytest.approx(1, abs=0.08)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("same_outputs", [True, False])
def test_nothing_to_measure_gives_finite_weights(dtype, same_outputs):
    zeros = torch.zeros(201, dtype=dtype)
    state = Agreement().init(zeros)
    for loss in (zeros, zeros + 1):
        for _ in range(10):
            weights, state = Agreement().update(
                state, Signals(loss, zeros[None], same_outputs=torch.full((200,), same_outputs))
            )
            assert bool(weights.isfinite().all())
    assert_close(weights[1:], torch.full_like(zeros[1:], 0.0 if same_outputs else 1.0))


def test_a_missing_task_keeps_its_weight_and_what_is_known_of_it():
    method = Agreement(warmup=2)
    state = method.init(torch.zeros(3, dtype=torch.float64))
    for row in HALF:
        before, state = method.update(state, Signals(numbers(1, 1, 1), numbers(1, *row)[None]))
    present = torch.tensor([True, False, True])
    weights, after = method.update(state, Signals(numbers(1, 0, 1), numbers(1, 0, 5)[None], present=present))
    assert_close(weights[1], before[1], rtol=0, atol=0)
    for old, new in zip(state.samples(), after.samples(), strict=True):
        assert_close(old[0], new[0], rtol=0, atol=0)
    # Alone in its batch, a task is compared with itself: r = 1.
    assert_close(after.values[1] - state.values[1], torch.tensor(1.0, dtype=torch.float64))


def test_updates_become_rarer():
    schedule = Agreement().schedule()
    for calls, updates in ((300, 58), (200_000, 165)):
        n, found = 0, 0
        while n < calls:
            n, found = n + schedule.after(n), found + 1
        assert found == updates


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"doubt": -1}, "`doubt` should be a number of at least 0. Got -1"),
        ({"doubt": math.nan}, "`doubt` should be a number of at least 0. Got nan"),
        ({"warmup": 1}, "`warmup` should be a whole number of at least 2. Got 1"),
        ({"warmup": 2.5}, "`warmup` should be a whole number of at least 2. Got 2.5"),
        ({"share": 0}, "`share` should be a positive number. Got 0"),
        ({"own_head": math.inf}, "`own_head` should be a positive number. Got inf"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Agreement(**settings)


class Pull(nn.Module):
    """One parameter without heads: the main task pulls it to 1, competing tasks to where they are told."""

    def __init__(self, *targets):
        super().__init__()
        self.theta = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        self.targets = dict(zip(TASKS, targets, strict=False))

    def losses(self):
        return (self.theta - 1).square().sum(), {k: (self.theta - t).square().sum() for k, t in self.targets.items()}


def train(model, reweighter, steps, lr=0.01):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        reweighter(*model.losses()).backward()
        optimizer.step()
    return reweighter.weights


def test_a_task_that_is_off_stays_off_when_the_weights_have_converged():
    model = Pull(2.0, -2.0)
    reweighter = Reweighter(None, TASKS[:2], model, every=1, convergence=Convergence(at_most=20))
    weights = train(model, reweighter, 30)
    assert reweighter.converged
    assert weights["a"] > 0.99
    assert weights["b"] == 0
    reweighter.reset()
    assert train(model, reweighter, 1)["b"] == 0


def test_without_the_main_loss_something_is_left_to_train_on():
    model = Pull(-2.0, -3.0)
    assert train(model, Reweighter(None, TASKS[:2], model, every=1), 20) == {"a": 0.0, "b": 0.0}
    model = Pull(-2.0, -3.0)
    reweighter = Reweighter(None, TASKS[:2], model, every=1, train_on_main=False)
    assert train(model, reweighter, 20) == {"a": 0.5, "b": 0.5}
    saved = reweighter.state_dict()
    reweighter = Reweighter(None, TASKS[:2], model, every=1, train_on_main=False)
    reweighter.load_state_dict(saved)
    assert train(model, reweighter, 20) == {"a": 0.5, "b": 0.5}


class TwoKinds(Net):
    """Tasks a and b go through the main head, c and d have heads of their own."""

    def __init__(self, factors=None, common=1.0):
        torch.manual_seed(0)
        super().__init__()
        y = self.x.sum(1, keepdim=True)
        self.y |= {"main": y, "a": y + 0.5 * self.y["a"], "b": -y}
        self.factors, self.common = {"main": 1.0, **dict.fromkeys(TASKS, 1.0), **(factors or {})}, common

    def losses(self):
        features = self.trunk(self.x)
        outputs = {name: self.heads["main" if name in "ab" else name](features) for name in self.heads}
        losses = {k: self.common * self.factors[k] * F.mse_loss(outputs[k], self.y[k]) for k in outputs}
        return losses.pop("main"), losses


def trajectory(**settings):
    """Weights and parameters after 60 steps."""
    net = TwoKinds(**settings)
    reweighter = Reweighter(Agreement(doubt=1), TASKS, net.trunk)
    train(net, reweighter, 60, lr=0.02 / net.common)
    return numbers(*reweighter.weights.values()), nn.utils.parameters_to_vector(net.parameters()).detach()


def test_tasks_of_both_kinds_through_the_whole_library():
    """The helper has more of the share than its opponent; heads of their own allow for up to 2 h each."""
    (a, b, c, d), _ = trajectory()
    assert a > 2 * b
    assert a + b <= 1
    assert 0 <= min(c, d) <= max(c, d) <= 2


@pytest.mark.parametrize("factors", [{"a": 1e3}, {"b": 1e-3, "c": 1e3}, {"a": 7.0, "c": 1e-3, "d": 0.03}], ids=str)
def test_the_scale_of_an_auxiliary_loss_does_not_matter(factors):
    for found, expected in zip(trajectory(factors=factors), trajectory(), strict=True):
        assert_close(found, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("common", [1e-3, 30.0])
def test_a_common_factor_on_all_losses_does_not_matter(common):
    """The step size of plain SGD is divided by it, so that the network learns the same."""
    for found, expected in zip(trajectory(common=common), trajectory(), strict=True):
        assert_close(found, expected, rtol=0, atol=1e-9)


class Sources(nn.Module):
    """Two sources of the main task, which train its outputs, on features that change."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.trunk, self.head = nn.Linear(6, 12).double(), nn.Linear(12, 4).double()
        self.centres = 2 * torch.randn(4, 6, dtype=torch.float64)

    def losses(self, step, tasks=("right", "wrong")):
        def loss(count, seed, shift=0):
            generator = torch.Generator().manual_seed(seed)
            y = torch.randint(4, (count,), generator=generator)
            x = self.centres[y] + torch.randn(count, 6, generator=generator, dtype=torch.float64)
            return F.cross_entropy(self.head(self.trunk(x).tanh()), (y + shift) % 4)

        aux = {"right": loss(20, 1000 + step), "wrong": loss(20, 2000 + step, shift=1)}
        return loss(24, 0), {name: aux[name] for name in tasks}

    def train_on(self, reweighter, steps, tasks=("right", "wrong")):
        for step in steps:
            self.zero_grad()
            reweighter(*self.losses(step, tasks)).backward()
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter -= 0.05 * parameter.grad


def test_training_goes_on_exactly_from_a_checkpoint_also_with_tasks_in_another_order():
    whole, parts = Sources(), Sources()
    tasks = ["right", "wrong"]
    expected = Reweighter(tasks=tasks, shared=whole.trunk)
    size = expected.state_dict()["_extra_state"].shape
    whole.train_on(expected, range(40))
    first = Reweighter(tasks=tasks, shared=parts.trunk)
    parts.train_on(first, range(6))  # before the first judgement: all that is known lies in the regressions
    saved = first.state_dict()
    assert saved["_extra_state"].shape == size
    for order in (tasks, tasks[::-1]):
        again = Sources()
        again.load_state_dict(parts.state_dict())
        second = Reweighter(tasks=order, shared=again.trunk)
        second.load_state_dict(saved)
        again.train_on(second, range(6, 40), order)
        assert second.weights == pytest.approx(expected.weights, abs=1e-12)
        assert_close(again.head.weight, whole.head.weight, rtol=0, atol=1e-12)
    assert expected.weights["right"] > 0.9
    assert expected.weights["wrong"] == 0
    forgetful = Sources()
    forgetful.load_state_dict(parts.state_dict())
    second = Reweighter(tasks=tasks, shared=forgetful.trunk)
    second.load_state_dict(saved)
    second._observer.regressions.restore({})
    forgetful.train_on(second, range(6, 40))
    assert not torch.equal(second._memory.transfer, expected._memory.transfer)


@pytest.mark.parametrize("features", [16, 80])
def test_a_coin_with_a_head_of_its_own_loses_its_weight(features):
    """New rows at every step; 80 features are more than what a checkpoint holds."""
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(6, features), nn.ReLU())
    heads = nn.ModuleDict({name: nn.Linear(features, 1) for name in ("main", "sum", "coin")})
    optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=0.01)
    reweighter = Reweighter(tasks=["sum", "coin"], shared=trunk)
    for _ in range(60):
        x = torch.randn(32, 6)
        answers = {"main": x[:, 0] > 0, "sum": x[:, 1] + x[:, 2] > 0, "coin": torch.rand(32) < 0.5}
        h = trunk(x)
        losses = {n: F.binary_cross_entropy_with_logits(heads[n](h)[:, 0], y.float()) for n, y in answers.items()}
        optimizer.zero_grad()
        reweighter(losses.pop("main"), losses).backward()
        optimizer.step()
    assert reweighter.weights["sum"] > 0.7
    assert reweighter.weights["coin"] < 0.3
