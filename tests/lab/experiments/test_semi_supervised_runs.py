"""Which runs make the semi-supervised tables."""

import pytest

from arml.lab.build.semi_supervised import DATASETS, LEARNERS
from arml.lab.experiments import semi_supervised_runs as ssl


def test_the_paper_preset_is_the_papers_protocol():
    run = ssl.paper("cifar10")
    assert (run.steps, run.labels, run.network) == (200_000, 4000, "wrn-28-2")
    assert run.batch_labelled + run.batch_unlabelled == 256
    assert run.supervised_batch == 256, "a batch is 256 images, and supervised learning has no unlabelled ones"
    assert run.lr_drop_at[0] * run.steps == 160_000
    assert LEARNERS["s4l"](run, DATASETS["cifar10"]).settings.lr == 0.005
    assert run.lr_drop * 0.005 == pytest.approx(0.001)
    assert ssl.paper("svhn").labels == 1000


def test_small_presets_have_a_network_that_learns_from_few_labels():
    """A WRN-10-1 did not, in as many steps: it was worse than a logistic regression."""
    for dataset, labels, steps in (("mnist5k", 50, 300), ("svhn", 1000, 500), ("cifar10", 1000, 500)):
        run = ssl.cpu(dataset)
        assert (run.network, run.labels, run.steps, run.lr) == ("plain-64", labels, steps, 0.002)
