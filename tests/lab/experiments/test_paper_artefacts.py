"""Which runs make the paper's tables and figures."""

from dataclasses import fields

import pytest

from arml.lab.build import complete
from arml.lab.experiments import domain_runs, multi_label_runs, semi_supervised_runs
from arml.lab.experiments.artefact import make_plan
from arml.lab.experiments.paper_artefacts import ARTEFACTS, PAPER_METHODS
from arml.lab.run import Line
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised

PAPER = {
    SemiSupervised: semi_supervised_runs.paper,
    MultiLabel: multi_label_runs.paper,
    Domains: domain_runs.paper,
}
PRESENTS = {"seed", "learner", "method", "labels", "shots", "target", "main", "leave_out"}
"""Fields in which the lines, columns and points of an artefact differ."""
OF_THE_PAPER = [name for name in ARTEFACTS if name != "misleading"]


def protocol(run):
    return {one.name: getattr(run, one.name) for one in fields(run) if one.name not in PRESENTS}


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_at_gpu_scale_every_run_has_the_papers_protocol(name):
    runs = ARTEFACTS[name].runs("gpu", 3)
    assert runs
    assert {run.seed for run in runs} == {0, 1, 2}
    for run in runs:
        assert protocol(run) == protocol(PAPER[type(run)](run.dataset))


@pytest.mark.filterwarnings("ignore:resnet18 starts from nothing")
@pytest.mark.parametrize("name", ARTEFACTS)
@pytest.mark.parametrize("scale", ["cpu", "gpu"])
def test_every_run_is_one_that_can_be_made(name, scale):
    runs = ARTEFACTS[name].runs(scale, 2)
    assert len(runs) == len({complete(run).name() for run in runs})
    assert [run.seed for run in runs] == sorted(run.seed for run in runs)


def lines(name, scale="gpu"):
    return {run.line() for run in ARTEFACTS[name].runs(scale, 1)}


def labels(name, scale="gpu"):
    return {run.subject().labels for run in ARTEFACTS[name].runs(scale, 1)}


def test_tables_have_the_papers_lines():
    assert {Line("s4l", method) for method in (*PAPER_METHODS, "grid")} <= lines("table1")
    assert {Line(name) for name in semi_supervised_runs.COMPARED} <= lines("table1")
    assert {run.labels for run in ARTEFACTS["table1"].runs("gpu", 1)} == {4000, 1000}
    assert {Line("joint", method) for method in PAPER_METHODS} <= lines("table2")
    assert {run.main for run in ARTEFACTS["table2"].runs("gpu", 1)} == {"5_o_Clock_Shadow"}
    assert labels("table2") == {0.01}
    with_weights = {Line(name, method) for name in ("baseline", "jt", "fada") for method in ("uniform", "arml")}
    assert {*with_weights, Line("jigen", "uniform"), Line("dsam"), Line("shape_bias")} <= lines("pacs")
    assert {run.target for run in ARTEFACTS["pacs"].runs("gpu", 1)} == {"art_painting", "cartoon", "photo", "sketch"}
    assert labels("pacs") == {5}


def test_figures_have_the_papers_points():
    assert {run.dataset for run in ARTEFACTS["figure2"].runs("gpu", 1)} == {"cifar10"}
    assert len(labels("figure2")) >= 4
    for scale in ("cpu", "gpu"):
        assert labels("figure3", scale) == {1, 2, 3, 4, 5}
        assert labels("figure4", scale) == {1, 100, float("inf")}
        assert {run.target for run in ARTEFACTS["figure3"].runs(scale, 1)} == {"art_painting"}


def test_table_3_has_no_runs_of_its_own():
    for scale in ("cpu", "gpu"):
        assert set(ARTEFACTS["table3"].runs(scale, 3)) <= set(ARTEFACTS["table2"].runs(scale, 3))


def test_the_figure_with_shots_shares_the_tables_runs():
    common = set(ARTEFACTS["figure3"].runs("cpu", 5)) & set(ARTEFACTS["pacs"].runs("cpu", 5))
    assert {run.shots for run in common} == {5}


def test_the_misleading_source_has_an_oracle():
    for scale in ("cpu", "gpu"):
        assert Line("jt", "uniform", "without misleading") in lines("misleading", scale)


@pytest.mark.parametrize("name", ARTEFACTS)
def test_every_run_at_cpu_scale_was_timed(name):
    artefact = ARTEFACTS[name]
    runs = artefact.runs("cpu", 5)
    plan = make_plan(runs, lambda run: False)
    assert (plan.unmeasured, len(plan.unfinished)) == (0, len(runs))
    assert plan.seconds / 2 < 8 * 3600, "two cores, one night"
    assert artefact.differences["cpu"]
    assert artefact.differences["gpu"]


def test_a_plan_counts_what_is_finished():
    artefact = ARTEFACTS["misleading"]
    runs = artefact.runs("cpu", 2)
    whole = make_plan(runs, lambda run: False)
    half = make_plan(runs, lambda run: run.seed == 0)
    assert (len(half.runs), len(half.unfinished)) == (len(runs), len(runs) / 2)
    assert half.seconds == pytest.approx(whole.seconds / 2)
    assert half.lines == [f"pacs_misleading, photo, 5 labels or shots: {len(runs) // 2} runs"]
    assert make_plan(artefact.runs("gpu", 1), lambda run: False).unmeasured > 0
