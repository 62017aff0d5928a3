"""A semi-supervised run becomes data, learner and batches."""

import pytest
from lab.parts import make

from arml.lab.catalogue import LEARNERS, find_method, method_names
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
