"""What somebody sees who uses the library for the first time: errors, warnings and representations."""

import subprocess
import sys
import warnings

import pytest
import torch
from torch import nn

import arml
from arml import ARML, Fixed, Reweighter, Uniform

TASKS = ["a", "b", "c"]


class Net(nn.Module):
    """Every task has a head on the trunk, except those that are computed apart from it."""

    def __init__(self, apart=()):
        super().__init__()
        self.trunk = nn.Linear(3, 4)
        self.heads = nn.ModuleDict({name: nn.Linear(3 if name in apart else 4, 1) for name in ("main", *TASKS)})
        self.apart = apart

    def losses(self):
        x = torch.ones(5, 3)
        losses = {
            name: head(x if name in self.apart else self.trunk(x)).square().mean() for name, head in self.heads.items()
        }
        return losses.pop("main"), losses


@pytest.mark.parametrize(
    ("apart", "message"),
    [
        ("abc", "No auxiliary loss ('a', 'b', 'c') depends on the shared parameters: no weight can be learned."),
        ("ac", "The losses of 'a', 'c' do not depend on the shared parameters: their gradients count as zero, and "
         "their weights cannot be learned. Only 'b' is left to compare with the main task."),
        ("b", "The loss of 'b' does not depend on the shared parameters: its gradient counts as zero, and its weight "
         "cannot be learned."),
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", [None, ARML()], ids=["recommended", "ARML"])
def test_a_shared_part_that_tasks_do_not_touch_gets_one_warning(method, apart, message):
    net = Net(apart=tuple(apart))
    reweighter = Reweighter(method, tasks=TASKS, shared=net.trunk, every=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            reweighter(*net.losses())
    assert [str(warning.message).split(" Pass as `shared`")[0] for warning in caught] == [message]


def test_tasks_that_all_touch_the_shared_part_get_none():
    net = Net()
    Reweighter(tasks=TASKS, shared=net.trunk, every=1)(*net.losses())


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (ARML, r"Pass ARML\(\), not the class ARML"),
        ("arml", r"Pass the method ARML\(\), not its name: `from arml import ARML`. Got 'arml'"),
        ("gated_arml", r"Pass the method GatedARML\(\)"),
        ("best", r"should be a method such as ARML\(\).* Got 'best'"),
    ],
)
def test_a_class_or_a_name_in_place_of_a_method_is_explained(method, message):
    with pytest.raises(TypeError, match=message):
        Reweighter(method, tasks=TASKS, shared=nn.Linear(1, 1))


def test_the_representation_shows_method_tasks_and_weights():
    shown = repr(Reweighter(Fixed([0.25, 1.75, 1.0]), tasks=TASKS, shared=nn.Linear(1, 1)))
    assert shown.startswith("Reweighter(Fixed(")
    assert "weights={'a': 0.25, 'b': 1.75, 'c': 1}" in shown
    many = repr(Reweighter(Uniform(), tasks=[f"t{k}" for k in range(13)], shared=nn.Linear(1, 1)))
    assert "'t9': 1, ... 3 more}" in many


def test_names_are_imported_when_they_are_used():
    code = "import sys, arml; print('torch' in sys.modules); arml.ARML(); print('torch' in sys.modules, arml.packing)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout.split()
    assert shown[:3] == ["False", "True", "<module"]
    assert set(arml.__all__) <= set(dir(arml))
    with pytest.raises(AttributeError, match="has no attribute 'ARLM'"):
        arml.ARLM  # noqa: B018
    everything = {}
    exec("from arml import *", everything)
    assert everything["Reweighter"] is Reweighter
