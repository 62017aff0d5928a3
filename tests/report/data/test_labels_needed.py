"""Labels needed, and the share of what equal weights need, by hand."""

import math

import pytest

from arml.lab.run import Line
from arml.report.data.labels_needed import LabelsNeeded, geometric_mean, labels_needed, labels_needed_by_seed, saving

ARML, UNIFORM = Line("s4l", "arml"), Line("s4l", "uniform")


def test_labels_needed_are_found_on_a_logarithmic_axis():
    errors = {10: 40.0, 100: 20.0, 1000: 10.0}
    assert labels_needed(errors, 20.0).labels == pytest.approx(100)
    assert labels_needed(errors, 30.0).labels == pytest.approx(10**1.5)
    assert labels_needed(errors, 40.0) == LabelsNeeded(pytest.approx(10), at_most=True)
    assert labels_needed(errors, 9.0) == LabelsNeeded(None)
    # The first crossing counts, and 0 or all labels have no place on the axis.
    errors = {0: 5.0, 10: 40.0, 100: 20.0, 1000: 30.0, math.inf: 1.0}
    assert labels_needed(errors, 30.0).labels == pytest.approx(10**1.5)
    assert labels_needed({}, 1.0) == LabelsNeeded(None)


def test_a_geometric_mean_and_its_interval():
    """Logarithms -1 and 1 (base e): mean 0, s = sqrt(2), t(0.975, 1) = 12.706: half width 12.706."""
    found = geometric_mean([math.exp(-1), math.exp(1)])
    assert found.mean == pytest.approx(1)
    assert found.high == pytest.approx(math.exp(12.7062), rel=1e-3)
    assert found.low == pytest.approx(math.exp(-12.7062), rel=1e-3)
    assert geometric_mean([]) is None


def test_the_saving_is_paired_seed_by_seed(topic):
    """A decade of labels is 10 points: log10 of the ratios is -1, -0.999, -0.996, with s = 0.00208 and t = 4.303."""
    assert labels_needed_by_seed(topic, UNIFORM, 25.0)[0].labels == pytest.approx(10**2.5)
    assert labels_needed_by_seed(topic, ARML, 25.0)[0].labels == pytest.approx(10**1.5)
    share = saving(topic, ARML, 25.0, UNIFORM)
    assert share.n == 3
    assert share.mean == pytest.approx(0.1, rel=0.02)
    assert share.low < 0.1 < share.high < 0.11
