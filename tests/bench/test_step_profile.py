"""The parts of a step: which they are, not how long they take."""

import pytest

from arml.bench.problems import MLP
from arml.bench.step_profile import (
    AGAIN,
    BACKWARD,
    DIRECTION,
    FORWARD,
    KEPT,
    MOST_OPERATIONS,
    OPTIMISER,
    REST,
    SECOND,
    step_operations,
    step_phases,
)
from arml.bench.timing import Plan

FEW = Plan(repeats=1)


@pytest.mark.parametrize("closure", [False, True])
def test_the_parts_of_a_step_are_told_apart(closure):
    parts = [one for one in step_phases(MLP, 3, 8, FEW, 1) if one.closure == closure]
    passes = [FORWARD, DIRECTION, AGAIN] if closure else [FORWARD, KEPT, SECOND]
    assert [one.name for one in parts] == [*passes, REST, BACKWARD, OPTIMISER]
    assert sum(one.share for one in parts) == pytest.approx(1)
    assert all(one.ms >= 0 for one in parts)


def test_the_most_expensive_operations_have_names_and_calls(capfd):
    found = step_operations(MLP, 3, 8, FEW)
    assert [sum(one.closure == closure for one in found) for closure in (False, True)] == [MOST_OPERATIONS] * 2
    assert any(one.name == "aten::addmm" and one.calls >= 3 for one in found)
    own = [one.ms for one in found if not one.closure]
    assert own == sorted(own, reverse=True)
    assert capfd.readouterr() == ("", "")
