"""What every method owes its users."""

import dataclasses
from dataclasses import replace

import pytest
import torch
from core.laws import (
    EVERY_METHOD,
    FOR_SO_MANY_TASKS,
    KEEP_THE_SUM,
    MOVE_ABSENT_TASKS,
    NOT_PERMUTABLE,
    NUM_AUX,
    random_step,
    run,
    signals_from,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from arml import Signals

every_method = pytest.mark.parametrize("method", EVERY_METHOD, ids=repr)


@every_method
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([1e-8, 1.0, 1e4]))
def test_weights_are_finite_and_not_negative(method, seed, scale):
    state = method.init(torch.zeros(1 + NUM_AUX, dtype=torch.float64))
    for step in range(4):
        jacobian, losses = random_step(seed + step)
        weights, state = method.update(state, signals_from(scale * jacobian, scale * losses, method, state))
        assert weights.shape == (1 + NUM_AUX,)
        assert bool(weights.isfinite().all())
        assert bool((weights >= 0).all())


@pytest.mark.parametrize("method", [m for m in EVERY_METHOD if repr(m) not in NOT_PERMUTABLE], ids=repr)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), permutation=st.permutations(range(1, 1 + NUM_AUX)))
def test_renaming_tasks_renames_weights(method, seed, permutation):
    order = [0, *permutation]
    plain, _ = run(method, range(seed, seed + 4))
    renamed, _ = run(method, range(seed, seed + 4), order=order)
    for weights, other in zip(plain, renamed, strict=True):
        assert_close(other, weights[order], rtol=1e-6, atol=1e-9)


@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_kept(method, dtype):
    history, state = run(method, range(3), dtype)
    assert {weights.dtype for weights in history} == {dtype}
    assert all(part.dtype in (dtype, torch.bool) for part in state)


@every_method
def test_arguments_are_untouched(method):
    _, state = run(method, range(3))
    jacobian, losses = random_step(3)
    signals = signals_from(jacobian, losses, method, state)
    before = [part.clone() for part in (*state, *filter(torch.is_tensor, signals))]
    method.update(state, signals)
    after = [*state, *filter(torch.is_tensor, signals)]
    assert all(torch.equal(a.nan_to_num(7), b.nan_to_num(7)) for a, b in zip(before, after, strict=True))


@every_method
def test_a_longer_stride_is_a_larger_step_size(method):
    """Exactly where a method has a step size, and without effect where it has none."""
    _, state = run(method, range(3))
    signals = signals_from(*random_step(3), method, state)._replace(stride=2.0)
    found, _ = method.update(state, signals)
    step = {"arml": replace(method.arml, lr=2 * method.arml.lr)} if hasattr(method, "arml") else {}
    step |= {"lr": 2 * method.lr} if hasattr(method, "lr") else {}
    expected, _ = replace(method, **step).update(state, signals._replace(stride=1.0))
    assert torch.equal(found, expected)


@every_method
def test_same_memory_and_signals_give_the_same_answer_and_leave_random_state_alone(method):
    _, state = run(method, range(3))
    signals = signals_from(*random_step(3), method, state)
    random_state = torch.get_rng_state()
    first, memory = method.update(state, signals)
    second, same_memory = method.update(state, signals)
    assert torch.equal(random_state, torch.get_rng_state())
    assert torch.equal(first, second)
    assert all(torch.equal(a.nan_to_num(7), b.nan_to_num(7)) for a, b in zip(memory, same_memory, strict=True))


@every_method
def test_memory_can_be_taken_apart_and_put_together(method):
    """A checkpoint is a list of tensors: rebuilt from it, a run goes on as if nothing had happened."""
    whole, _ = run(method, range(6))
    _, state = run(method, range(3))
    state = type(state)(*[part.clone() for part in list(state)])
    for seed in range(3, 6):
        weights, state = method.update(state, signals_from(*random_step(seed), method, state))
        assert torch.equal(weights, whole[seed])


@every_method
def test_nothing_present_changes_nothing(method):
    history, state = run(method, range(3))
    nothing = torch.zeros(1 + NUM_AUX, dtype=torch.float64)
    weights, new_state = method.update(state, Signals(nothing, present=nothing.bool()))
    assert torch.equal(weights, history[-1])
    assert all(torch.equal(a.nan_to_num(7), b.nan_to_num(7)) for a, b in zip(state, new_state, strict=True))


@pytest.mark.parametrize("method", [m for m in EVERY_METHOD if repr(m) not in MOVE_ABSENT_TASKS], ids=repr)
@pytest.mark.parametrize("missing", [[1], [2, 4], [1, 2, 3, 4]])
def test_a_task_that_is_not_present_keeps_its_weight(method, missing):
    history, state = run(method, range(3))
    jacobian, losses = random_step(3)
    jacobian[missing], losses[missing] = 0, 0
    present = torch.ones(1 + NUM_AUX, dtype=torch.bool)
    present[missing] = False
    weights, _ = method.update(state, signals_from(jacobian, losses, method, state)._replace(present=present))
    assert torch.equal(weights[missing], history[-1][missing])
    assert bool((weights >= 0).all())


@pytest.mark.parametrize("method", KEEP_THE_SUM, ids=repr)
@pytest.mark.parametrize("missing", [[], [1], [2, 4]])
def test_the_sum_of_weights_is_the_number_of_tasks(method, missing):
    _, state = run(method, range(3))
    jacobian, losses = random_step(3)
    present = torch.ones(1 + NUM_AUX, dtype=torch.bool)
    present[missing] = False
    weights, _ = method.update(state, signals_from(jacobian, losses, method, state)._replace(present=present))
    assert_close(weights[1:].sum(), torch.tensor(float(NUM_AUX), dtype=torch.float64))


@pytest.mark.parametrize("method", [m for m in EVERY_METHOD if repr(m) not in FOR_SO_MANY_TASKS], ids=repr)
def test_one_auxiliary_task_is_enough(method):
    history, _ = run(method, range(3), num_aux=1)
    assert all(bool(weights.isfinite().all()) and bool((weights >= 0).all()) for weights in history)


@every_method
def test_settings_are_frozen(method):
    name = next(iter(dataclasses.fields(method)), None)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(method, name.name if name else "anything", 1)
