"""Fixtures that several rooms of the report share."""

import pytest
from report.made_records import dg_runs, finished_chart, mlc_runs, ssl_runs, write
from report.made_reports import compare, make_charts

from arml.lab.run_kinds import Domains, SemiSupervised
from arml.report.data.topics import topics


@pytest.fixture
def topic(tmp_path):
    """Uniform falls from 40 to 20 between 10 and 1000 labels; ARML needs a tenth of them; seeds differ a little."""
    for seed in range(3):
        for labels, uniform, arml in ((10, 40, 30), (100, 30, 20), (1000, 20, 10)):
            noise = 0.1 * seed
            write(tmp_path, SemiSupervised(method="uniform", seed=seed, labels=labels), uniform + noise)
            write(tmp_path, SemiSupervised(method="arml", seed=seed, labels=labels), arml + noise * (1 + seed / 10))
    (found,) = topics(compare(tmp_path))
    return found


@pytest.fixture(scope="session")
def charts(tmp_path_factory):
    """Every kind of chart, by key."""
    path = tmp_path_factory.mktemp("runs")
    ssl_runs(path, labels=(50, 100))
    mlc_runs(path)
    dg_runs(path)
    return {**make_charts(path), "cost": finished_chart()}


@pytest.fixture
def spread(tmp_path):
    """Errors 5 and 95 have the mean 50 and an interval of 50 ± 571.8, weights 0.1 and 1.9 that of 1 ± 11.4."""
    for count in (1, 5, "all"):
        for seed, (error, weight) in enumerate(((5.0, 0.1), (95.0, 1.9))):
            write(tmp_path, Domains(shots=count, seed=seed), error, weights={"a": weight})
    return make_charts(tmp_path)
