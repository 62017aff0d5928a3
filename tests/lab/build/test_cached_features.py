"""Features of frozen layers are computed once per image."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from arml.lab.build import cached_features
from arml.lab.build.cached_features import compute_features
from arml.lab.build.networks import Start, check_start
from arml.lab.data.cache import report_nothing
from arml.lab.data.preprocess import Scale
from arml.lab.models.frozen import split_trunk
from arml.lab.models.resnet import resnet18
from arml.lab.run_kinds import Domains


@pytest.fixture
def run(tmp_path):
    torch.manual_seed(0)
    torch.save(resnet18(1).state_dict(), tmp_path / "weights.pt")
    return Domains(network="resnet18", weights=str(tmp_path / "weights.pt"), freeze=5, cache_features=True)


def images(seed):
    return torch.randint(256, (70, 1, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def compute(x, run, folder):
    return compute_features(x, run, folder, name="pictures", progress=report_nothing)


def test_features_are_outputs_of_the_frozen_layers(run, tmp_path):
    features = compute(images(0), run, tmp_path)
    trunk = resnet18(1)
    trunk.load_state_dict(torch.load(run.weights))
    expected = split_trunk(trunk, 5)[0](Scale()(images(0)))
    assert features.dtype == torch.float16
    assert_close(features, expected.half(), rtol=1e-2, atol=1e-3)


def test_they_are_computed_once(run, tmp_path, monkeypatch):
    first = compute(images(0), run, tmp_path)
    monkeypatch.setattr(cached_features, "_chunks", lambda *_: (pytest.fail("computed again") for _ in [0]))
    assert torch.equal(compute(images(0), run, tmp_path), first)


def test_other_images_or_layers_have_other_features(run, tmp_path):
    first = compute(images(0), run, tmp_path)
    assert not torch.equal(compute(images(1), run, tmp_path), first)
    assert compute(images(0), replace(run, freeze=6), tmp_path).shape != first.shape


@pytest.mark.parametrize(
    ("network", "start", "message"),
    [
        ("small-32", Start(freeze=2), "random layers of small-32"),
        ("efficientnet-lite0", Start(cached=True), "Say how many with --freeze"),
        ("efficientnet-lite0", Start(freeze=-1), "at least 0. Got -1"),
    ],
)
def test_what_makes_no_sense_is_refused(network, start, message):
    with pytest.raises(ValueError, match=message):
        check_start(network, start)
