"""A semi-supervised run becomes data, learner and batches."""

import pytest
import torch
from lab.parts import make

from arml.bench.timing import peak_bytes
from arml.lab.build import semi_supervised
from arml.lab.catalogue import LEARNERS, find_method, method_names
from arml.lab.data import Dataset, GcnZca, Images
from arml.lab.data.cache import report_nothing
from arml.lab.run_kinds import SemiSupervised


def test_every_name_a_run_may_have_becomes_an_object(tmp_path):
    for learner in LEARNERS["ssl"]:
        parts = make(SemiSupervised(learner=learner, method="uniform"), tmp_path)
        assert (parts.reweighter is None) == (learner == "supervised")
    for method in method_names():
        parts = make(SemiSupervised(method=method), tmp_path)
        assert (parts.noise is not None) == (method == "arml_full")
    assert make(SemiSupervised(method="grid-0.5"), tmp_path).reweighter.weights == {
        "rotation": 0.5,
        "exemplar": 1.5,
    }


def test_gradnorm_measures_on_the_last_shared_layer(tmp_path):
    for network, layer in (("small-32", "layer3"), ("wrn-10-1", "group3.0"), ("wrn-16-1", "group3.1")):
        parts = make(SemiSupervised(method="gradnorm", network=network), tmp_path)
        assert parts.reweighter.method.layer == layer


def test_unknown_names_list_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"Unknown method 'gradnrom'. Known: adaloss, arml, arml_full"):
        find_method("gradnrom")
    with pytest.raises(
        ValueError, match=r"'resnet' is no network for images. Known: small-FEATURES such as small-32, plain-FEAT"
    ):
        make(SemiSupervised(network="resnet"), tmp_path)


def draw_images(count: int, seed: int) -> Images:
    draw = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (count, 3, 4, 4), generator=draw, dtype=torch.uint8)
    return Images(pixels, torch.zeros(count, dtype=torch.int64))


def test_images_are_whitened_once_for_all_runs(tmp_path, monkeypatch):
    dataset, counts = Dataset("tiny", draw_images(1200, 0), draw_images(30, 1), 10), []
    found = semi_supervised._whiten(dataset, tmp_path, lambda *at: counts.append(at))
    whiten = GcnZca.fit(dataset.train.x)
    assert torch.equal(found.train.x, torch.cat([whiten(part) for part in dataset.train.x.split(1000)]))
    assert torch.equal(found.test.x, whiten(dataset.test.x))
    assert torch.equal(found.train.y, dataset.train.y)
    assert counts == [(1000, 1200), (1200, 1200), (30, 30)]

    monkeypatch.setattr(GcnZca, "fit", lambda *_: pytest.fail("whitened again"))
    again = semi_supervised._whiten(dataset, tmp_path, report_nothing)
    assert torch.equal(again.train.x, found.train.x)
    assert torch.equal(again.test.x, found.test.x)


@pytest.mark.parametrize("changed", ["train", "test"])
def test_other_images_are_whitened_anew_and_replace_the_old_ones(tmp_path, changed):
    dataset = Dataset("tiny", draw_images(60, 0), draw_images(30, 1), 10)
    semi_supervised._whiten(dataset, tmp_path, report_nothing)
    other = dataset._replace(**{changed: draw_images(60 if changed == "train" else 30, 2)})
    found = semi_supervised._whiten(other, tmp_path, report_nothing)
    assert torch.equal(found.test.x, GcnZca.fit(other.train.x)(other.test.x))
    assert len(list(tmp_path.glob("whitened-*.npy"))) == 2


def test_whitening_holds_a_part_of_the_images_in_memory(tmp_path):
    dataset = Dataset("many", draw_images(40_000, 0), draw_images(10, 1), 10)
    GcnZca.fit(dataset.train.x, tmp_path)
    everything = 4 * dataset.train.x.numel()
    peak = peak_bytes(lambda: semi_supervised._whiten(dataset, tmp_path, report_nothing))
    assert peak < 0.2 * everything
