"""What is claimed about savings, and what is not."""

import pytest
from report.made_records import write
from report.made_reports import compare

from arml.lab.run_kinds import Domains, SemiSupervised
from arml.report.data.topics import topics
from arml.report.tables.saving_sentences import saving_sentences


def test_a_saving_with_its_interval(topic):
    (sentence,) = saving_sentences(topic, 25.0)
    assert sentence.startswith("S4L + ARML needs 10 % (9.92 to 10.2) ")
    assert sentence.endswith("of the labels that uniform weights need for an error of 25.00 %, n = 3 seeds.")


def test_without_a_seed_that_reaches_the_error_there_is_no_share(topic):
    assert saving_sentences(topic, 15.0) == [
        "S4L + ARML: no seed reaches an error of 15.00 % both with it and with uniform weights, so no share can be "
        "given."
    ]


def test_a_saving_that_is_not_established_is_called_so(tmp_path):
    for seed, shift in enumerate((-2.0, 0.0, 2.0)):
        for labels, error in ((10, 40.0), (100, 30.0), (1000, 20.0)):
            write(tmp_path, SemiSupervised(method="uniform", seed=seed, labels=labels), error)
            write(tmp_path, SemiSupervised(method="arml", seed=seed, labels=labels), error + shift)
    (found,) = topics(compare(tmp_path))
    assert "The interval includes 100 %: no saving is established." in saving_sentences(found, 30.0)[0]


@pytest.mark.parametrize(("level", "whom"), [(45.0, "both"), (35.0, "it")])
def test_an_error_that_the_fewest_labels_reach_is_not_called_unreached(topic, level, whom):
    assert saving_sentences(topic, level) == [
        f"S4L + ARML: where it and uniform weights reach an error of {level:.2f} % (3 of 3 seeds), the fewest labels "
        f"tried are already enough for {whom}, so no share can be given."
    ]


def test_a_bound_of_one_seed_is_not_claimed_for_all(tmp_path):
    """Seed 1 does not reach 30 % with either; on seed 0 equal weights reach it with the fewest labels."""
    for seed, arml, uniform in ((0, (40.0, 20.0), (25.0, 20.0)), (1, (50.0, 40.0), (50.0, 40.0))):
        for labels, ours, theirs in zip((10, 100), arml, uniform, strict=True):
            write(tmp_path, SemiSupervised(method="arml", seed=seed, labels=labels), ours)
            write(tmp_path, SemiSupervised(method="uniform", seed=seed, labels=labels), theirs)
    (found,) = topics(compare(tmp_path))
    (sentence,) = saving_sentences(found, 30.0)
    assert "(1 of 2 seeds), the fewest labels tried are already enough for uniform weights, so" in sentence


def test_without_uniform_there_is_no_share(tmp_path):
    for labels in (10, 100):
        write(tmp_path, SemiSupervised(labels=labels), 1000 / labels)
    (found,) = topics(compare(tmp_path))
    assert "no seed was run with it and with uniform weights" in saving_sentences(found, 50.0)[0]


def test_without_labels_there_is_no_share(tmp_path):
    """Sources alone use no label of the target with equal weights."""
    for method in ("uniform", "arml"):
        for count in (1, 5):
            write(tmp_path, Domains(learner="baseline", method=method, shots=count), 80.0 / count)
    (found,) = topics(compare(tmp_path))
    assert saving_sentences(found, 50.0) == [
        "Sources only (Baseline) + ARML: with uniform weights it uses no label of the target, so no share can be given."
    ]
