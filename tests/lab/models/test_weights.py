"""Weights from files: those that fit, those that do not, and files that are something else."""

import argparse
import string
from collections import OrderedDict

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from arml.lab.models import Network, small
from arml.lab.models.resnet import resnet18
from arml.lab.models.weights import load_weights

EXACT = {"rtol": 0, "atol": 0}


def trained():
    """A trunk whose weights and statistics are not those at the start."""
    trunk = small(1, 4)
    trunk(torch.randn(6, 1, 8, 8))
    return trunk


def prefixed(state, prefix):
    return OrderedDict((prefix + name, value) for name, value in state.items())


CLASSIFIER = {"fc.weight": torch.ones(10, 4), "fc.bias": torch.ones(10)}
FORMS = {
    "plain": lambda state: state,
    "state_dict": lambda state: {"epoch": 3, "state_dict": state, "best": 0.5},
    "model": lambda state: {"model": state, "optimizer": {"lr": 0.1}},
    "network": lambda state: {"network": prefixed(state, "trunk."), "progress": {"step": 3}},
    "module": lambda state: prefixed(state, "module."),
    "trunk": lambda state: prefixed(state, "trunk.") | {"heads.class.weight": torch.ones(3, 4)},
    "backbone": lambda state: prefixed(state, "module.backbone."),
    "classifier": lambda state: state | CLASSIFIER,
    "wrapped classifier": lambda state: {"state_dict": prefixed(state | CLASSIFIER, "module.")},
    "old": lambda state: {name: x for name, x in state.items() if not name.endswith("num_batches_tracked")},
    "double": lambda state: {name: x.double() if x.is_floating_point() else x for name, x in state.items()},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_network(tmp_path, form):
    source, trunk = trained(), small(1, 4)
    torch.save(FORMS[form](source.state_dict()), tmp_path / "weights.pth")
    load_weights(trunk, tmp_path / "weights.pth")
    x = torch.randn(2, 1, 8, 8)
    assert_close(trunk.eval()(x), source.eval()(x), **EXACT)
    assert trunk.layer1[0].weight.dtype == torch.float32
    assert int(trunk.layer1[1].num_batches_tracked) == (0 if form == "old" else 1)


def test_weights_of_a_whole_network_and_of_the_old_file_format(tmp_path):
    source, trunk = Network(trained(), 4, {"class": 3}), small(1, 4)
    torch.save(source.state_dict(), tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    load_weights(trunk, tmp_path / "old.pth")
    assert_close(trunk.state_dict(), source.trunk.state_dict(), **EXACT)


def test_resnet18_with_its_classifier(tmp_path):
    source = resnet18()
    torch.save(source.state_dict() | {"fc.weight": torch.ones(1000, 512), "fc.bias": torch.ones(1000)}, tmp_path / "r")
    trunk = resnet18()
    load_weights(trunk, tmp_path / "r")
    assert_close(trunk.state_dict(), source.state_dict(), **EXACT)


def test_names_that_the_network_has_itself_are_neither_shortened_nor_left_out(tmp_path):
    source, copy = (nn.ModuleDict({"trunk": nn.Linear(2, 2), "fc": nn.Linear(2, 3)}) for _ in range(2))
    torch.save(source.state_dict(), tmp_path / "w")
    load_weights(copy, tmp_path / "w")
    assert_close(copy.state_dict(), source.state_dict(), **EXACT)


def message(tmp_path, content):
    """The error, after which the trunk is as before."""
    trunk = small(1, 4)
    before = {name: x.clone() for name, x in trunk.state_dict().items()}
    torch.save(content, tmp_path / "weights.pth")
    with pytest.raises(ValueError, match=r"weights\.pth: ") as error:
        load_weights(trunk, tmp_path / "weights.pth")
    assert_close(trunk.state_dict(), before, **EXACT)
    return str(error.value)


def test_what_does_not_fit_is_listed_and_nothing_is_changed(tmp_path):
    state = trained().state_dict()
    state["layer1.0.weight"] = torch.ones(2, 3, 3, 3)
    del state["layer3.1.running_mean"]
    text = message(tmp_path, state | {"jigsaw.weight": torch.ones(1), "jigsaw.bias": torch.ones(1)})
    assert "Missing: 1: layer3.1.running_mean." in text
    assert "Not expected: 2: jigsaw.weight, jigsaw.bias." in text
    assert "1: layer1.0.weight ([2, 3, 3, 3] in the file, [2, 1, 3, 3] in the network)" in text


def test_one_thing_that_does_not_fit_is_enough(tmp_path):
    state = trained().state_dict()
    assert "Missing: none. Not expected: 1: jigsaw. Of" in message(tmp_path, state | {"jigsaw": torch.ones(1)})
    text = message(tmp_path, state | {"layer1.1.bias": torch.ones(3)})
    assert "Missing: none. Not expected: none. Of another shape: 1: layer1.1.bias ([3] in the file, [2]" in text


def test_long_lists_show_five_and_the_count(tmp_path):
    text = message(tmp_path, {f"{i}": torch.ones(1) for i in range(7)})
    assert "Not expected: 7: 0, 1, 2, 3, 4, ..." in text
    assert "5, ..." not in text
    assert "Missing: 15: layer1.0.weight, " in text
    assert "Of another shape: none" in text


def test_two_networks_in_one_file_are_refused(tmp_path):
    state = trained().state_dict()
    text = message(tmp_path, prefixed(state, "module.") | prefixed(state, "trunk."))
    assert "two entries are called layer1.0.weight" in text
    assert "trunk.layer1.0.weight" in text


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ([1, 2], "type list"),
        ({}, "nothing in it"),
        ({"epoch": 3, "note": "hello"}, "no tensors: 2: epoch, note"),
        ({"args": argparse.Namespace(lr=1)}, "damaged or different"),
    ],
)
def test_files_with_something_else_in_them_are_refused(tmp_path, content, found):
    text = message(tmp_path, content)
    assert found in text
    assert "save its state dict alone" in text


@pytest.mark.parametrize("old_format", [False, True])
@pytest.mark.parametrize("share", [0, 0.01, 0.1, 0.5, 0.9, 0.999])
def test_a_file_that_is_cut_is_refused(tmp_path, share, old_format):
    path = tmp_path / "weights.pth"
    torch.save(trained().state_dict(), path, _use_new_zipfile_serialization=not old_format)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ValueError, match=r"weights\.pth: expected weights"):
        load_weights(small(1, 4), path)


# Every first letter is another instruction to whoever takes the bytes for a pickle.
JUNK = [(letter + "unk, as anybody may type it.\n").encode() for letter in string.printable]


@pytest.mark.parametrize("content", [b"<html>not found</html>" * 20, bytes(600), b"PK\x03\x04" + bytes(100), *JUNK])
def test_another_file_under_the_name_is_refused(tmp_path, content):
    (tmp_path / "weights.pth").write_bytes(content)
    with pytest.raises(ValueError, match=r"weights\.pth: expected weights.*damaged or different"):
        load_weights(small(1, 4), tmp_path / "weights.pth")


@pytest.mark.parametrize("name", ["nowhere.pth", "."])
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(ValueError, match="found no such file"):
        load_weights(small(1, 4), tmp_path / name)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1j])
def test_weights_that_are_no_finite_real_numbers_are_refused(tmp_path, value):
    network = nn.Linear(2, 2)
    content = {"weight": torch.full((2, 2), value), "bias": torch.zeros(2)}
    torch.save(content, tmp_path / "a.pt")
    before = network.weight.clone()
    with pytest.raises(ValueError, match=r"a\.pt: the weights should be finite real numbers.*1: weight"):
        load_weights(network, tmp_path / "a.pt")
    assert_close(network.weight, before)
