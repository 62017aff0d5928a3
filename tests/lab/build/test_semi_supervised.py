"""A semi-supervised run becomes data, learner and batches."""

from dataclasses import replace

import pytest
import torch
from lab.parts import make
from torch import nn

from arml.bench.timing import peak_bytes
from arml.lab.build import complete, semi_supervised
from arml.lab.catalogue import GRID, LEARNERS, METHODS, find_method
from arml.lab.data import Dataset, GcnZca, Images
from arml.lab.data.cache import report_nothing
from arml.lab.learners import VATSettings
from arml.lab.learners.vat import RECIPE_XI
from arml.lab.run_kinds import SemiSupervised
from arml.lab.train import descend, losses_of


def test_every_name_a_run_may_have_becomes_an_object(tmp_path):
    for learner in LEARNERS["ssl"]:
        parts = make(SemiSupervised(learner=learner, method="uniform"), tmp_path)
        assert (parts.reweighter is None) == (learner == "supervised")
    for method in (*METHODS, *GRID):
        parts = make(SemiSupervised(method=method), tmp_path)
        assert (parts.noise is not None) == (method == "arml_full")
    assert make(SemiSupervised(method="grid-0.5"), tmp_path).reweighter.weights == {
        "rotation": 0.5,
        "exemplar": 1.5,
    }


FIXED_RECIPES = [name for name, facts in LEARNERS["ssl"].items() if not facts.weighted]


@pytest.mark.parametrize("learner", FIXED_RECIPES)
def test_learners_that_no_method_weights_keep_the_weights_of_their_papers(learner, tmp_path):
    run = complete(SemiSupervised(learner=learner, steps=12, every=1, batch_labelled=4, batch_unlabelled=4))
    assert run.method == "uniform", "what the record says is what happens"
    parts = make(run, tmp_path)
    for step in range(3):
        descend(parts, losses_of(parts, step))
    weights = {} if parts.reweighter is None else parts.reweighter.weights
    assert weights == dict.fromkeys(parts.learner.tasks, 1.0)


@pytest.mark.parametrize("method", ["adaloss", "gradnorm", "grid-0.5"])
def test_a_method_for_a_learner_that_takes_none_is_refused(method, tmp_path):
    run = SemiSupervised(learner="mean_teacher", method=method)
    with pytest.raises(ValueError, match=rf"mean_teacher.*Got --method {method}.*Leave --method out.*: s4l\."):
        complete(run)
    with pytest.raises(ValueError, match="mean_teacher"):
        make(run, tmp_path)
    assert complete(SemiSupervised(method=method)).method == method


def test_the_text_of_the_paper_decides_and_the_release_is_an_option(tmp_path):
    ours, released = (make(SemiSupervised(as_released=given), tmp_path).learner.settings for given in (False, True))
    assert (ours.augment_student, ours.exemplar_offset) == (False, 1.0)
    assert (released.augment_student, released.exemplar_offset) == (True, 2.0)
    for learner in ("vat", "vat_entmin"):
        run = SemiSupervised(learner=learner, method="uniform")
        assert make(run, tmp_path).learner.settings.xi == VATSettings().xi
        assert make(replace(run, as_released=True), tmp_path).learner.settings.xi == RECIPE_XI


def test_supervised_learning_may_have_a_batch_of_its_own(tmp_path):
    run = SemiSupervised(learner="supervised", method="uniform", batch_labelled=4, batch_unlabelled=3)
    assert len(make(run, tmp_path).batches.next().y) == 4
    assert len(make(replace(run, supervised_batch=7), tmp_path).batches.next().y) == 7
    assert len(make(SemiSupervised(batch_labelled=4, supervised_batch=7), tmp_path).batches.next().y) == 4, "s4l"
    with pytest.raises(ValueError, match=r"`supervised_batch` should be at least 1. Got 0"):
        SemiSupervised(supervised_batch=0)


def test_gradnorm_measures_on_the_last_shared_layer(tmp_path):
    """The last tensor with weights before the features: one convolution, not the block around it."""
    layers = {"small-32": "layer3.0", "wrn-10-1": "group3.0.residual.3", "wrn-16-1": "group3.1.residual.3"}
    for network, layer in layers.items():
        parts = make(SemiSupervised(method="gradnorm", network=network), tmp_path)
        assert parts.reweighter.method.layer == layer
        assert isinstance(parts.network.trunk.get_submodule(layer), nn.Conv2d)
        convolutions = [name for name, part in parts.network.trunk.named_modules() if isinstance(part, nn.Conv2d)]
        assert layer == [name for name in convolutions if not name.endswith("shortcut")][-1]


def test_unknown_names_list_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match=r"Unknown method 'gradnrom'. Known: adaloss, agreement, arml, arml_full"):
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
