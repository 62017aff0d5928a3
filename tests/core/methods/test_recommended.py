"""A Reweighter without a method uses the recommended one."""

import pytest
import torch
from core.test_reweighter import TASKS, Net, train

from arml import ARML, Reweighter
from arml.methods import recommended


def test_without_a_method_the_recommended_one_learns():
    net = Net()
    reweighter = Reweighter(tasks=TASKS, shared=net.trunk)
    assert reweighter.method == recommended()
    train(net, reweighter, 60)
    assert set(reweighter.weights.values()) != {1.0}


def test_naming_the_recommended_method_changes_nothing():
    histories = []
    for method in (None, recommended()):
        torch.manual_seed(0)
        net = Net()
        histories.append(train(net, Reweighter(method, TASKS, net.trunk), 3))
    assert histories[0] == histories[1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, r"needs `tasks` and `shared`. Write Reweighter\(tasks=\[\"rotation\"\], shared=model.trunk\)"),
        ({"tasks": TASKS}, "A Reweighter needs `shared`. Write"),
        ({"method": ARML(), "shared": Net().trunk}, "A Reweighter needs `tasks`. Write"),
    ],
)
def test_what_is_missing_is_named(settings, message):
    with pytest.raises(TypeError, match=message):
        Reweighter(**settings)


def test_tasks_in_the_place_of_the_method_are_noticed():
    with pytest.raises(TypeError, match=r"`method` should be a method such as ARML\(\).* Got \['a', 'b', 'c', 'd'\]"):
        Reweighter(TASKS, Net().trunk)
