"""The session, the page and the command."""

import math

import pytest

from arml.report.data.summary import Summary
from arml.theory.failures.minibatch import CONTENDERS as NOISY
from arml.theory.failures.minibatch import Minibatch
from arml.theory.failures.misleading import CONTENDERS as FAR
from arml.theory.failures.misleading import Misleading
from arml.theory.failures.units import CONTENDERS as SCALED
from arml.theory.failures.units import Units
from arml.theory.failures.vanishing import Vanishing
from arml.theory.gradient_noise import NoiseSizes, measure_noise
from arml.theory.langevin_checks import TwoSamples
from arml.theory.page import write_page
from arml.theory.session import Findings, Plan, join
from arml.theory.studies import RULES, LabelStudy, LangevinStudy, study_information, study_labels, sweep_theorem


def made_findings() -> Findings:
    """Findings whose costly parts are made up."""
    some = [Summary(1.0, 0.1, 4), Summary(0.5, 0.1, 4)]
    rules = dict.fromkeys(RULES, some)
    return Findings(
        Plan(quick=True),
        LabelStudy([1, 8], rules, rules, {rule: [[1.0, 1.0, 1.0]] * 2 for rule in RULES}, [1.0, 0.1], [0.1, 0.05]),
        study_information(),
        sweep_theorem(60, 0),
        LangevinStudy([0.1], [1.0], [1.05], [TwoSamples(0.01, 0.5)], (99.0, 105.0), TwoSamples(5.0, 0.005), 1.2),
        [NoiseSizes(25, 0, 0.002, 0.02, 1e-5, 2e-3, 0.08)],
        Misleading([0.0, 1.0], [0.4, 0.4], [0.1, 0.3], [0.1, 0.4], {one.name: some for one in FAR}),
        Vanishing([1, 2], {"ARML": [1.0, 0.5]}, {"ARML": 0.1}),
        Units([0.1, 1.0], {one.name: some for one in SCALED}, {one.name: some for one in SCALED}),
        Minibatch([0.1, 1.0], 1.7, [1.6, 0.4], {one.name: [1.6, 0.4] for one in NOISY}),
    )


def test_parts_over_neighbouring_values_are_joined():
    parts = [Minibatch([noise], 1.7, [noise], {"ARML": [noise]}) for noise in (0.1, 1.0)]
    assert join(parts) == Minibatch([0.1, 1.0], 1.7, [0.1, 1.0], {"ARML": [0.1, 1.0]})
    alone = Vanishing([1, 2], {"ARML": [1.0, 0.5]}, {"ARML": 0.1})
    assert join([alone]) == alone


@pytest.mark.slow
def test_the_page_has_every_section_and_no_link_to_the_net(tmp_path):
    figures = write_page(made_findings(), tmp_path)
    page = (tmp_path / "index.html").read_text()
    for words in (
        "A prior is worth labels",
        "Four answers",
        "Theorem 1, checked",
        "do not hold as printed",
        "It fails",
    ):
        assert words in page
    assert "arml theory --seed 0 --quick" in page
    assert page.count("<figure") == len([path for path in figures if path.suffix == ".png"]) == 10
    assert "<script src" not in page
    assert "| misleading task only |" in (tmp_path / "tables.md").read_text()


def test_every_plan_has_all_parts():
    for plan in (Plan(), Plan(quick=True)):
        assert {name for name, _ in plan.pieces()} == set(Findings._fields) - {"plan"}


def test_the_study_of_labels_compares_all_rules():
    found = study_labels([4], draws=2, runs=1, seed=0)
    assert set(found.kl) == set(RULES)
    assert found.kl["ARML as run"][0].n == 1
    assert found.kl["alpha*"][0].mean <= min(found.kl[rule][0].mean for rule in RULES) + 1e-9
    assert found.main_alone == [pytest.approx(0.25)]


@pytest.mark.slow
def test_noise_is_measured_in_a_real_run():
    (found,) = measure_noise(0, at=(3,), batches=3)
    assert found.injected_as_printed == pytest.approx(math.sqrt(2 * 0.003))
    assert 0 < found.gradient_plain < found.injected_plain < found.injected_as_printed
    assert 0 < found.gradient < found.injected


def test_the_command_refuses_what_makes_no_sense(tmp_path):
    from cli.typed import arml

    assert "--seed should be at least 0. Got -1." in arml("theory", "--seed", "-1", "--out", str(tmp_path)).stderr
    assert "--workers" in arml("theory", "--workers", "0", "--out", str(tmp_path)).stderr
