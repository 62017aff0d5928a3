"""The record of a loop is the lab's, survives crashes, and costs next to nothing."""

import copy
import json
import time

import pytest
import torch
from core.test_reweighter import TASKS, Net

from arml import ARML, Agreement, CosineSim, Recorder, Reweighter, Uniform, WeightedCosineSim, alignment
from arml.cli.report import defaults
from arml.gradients import pairwise
from arml.lab.agreement import measure_agreement
from arml.lab.trace import read, result
from arml.report.contents import make_report
from arml.report.data.records import collect

SEEDS, STEPS = (0, 1, 2), 8


def train(folder, method, steps=STEPS, *, seed=0, finishes=True, **settings):
    """A short training of a small network; returns its Recorder and network."""
    torch.manual_seed(seed)
    net = Net()
    reweighter = Reweighter(method, TASKS, net.trunk, every=1)
    settings = {"settings": {"seed": seed}, "every": 2, "loggers": (), **settings}
    with Recorder(folder, reweighter, main="diagnosis", **settings) as recorder:
        for step in range(steps):
            if step % 2:
                reweighter.backward(*net.losses())
            else:
                reweighter(*net.losses()).backward()
        recorder.log({"validation_error": 20.0 + seed})
        if finishes:
            recorder.finish({"error": 10.0 + seed, "auc": 90.0})
    return recorder, net


def lines(recorder):
    return [json.loads(line) for line in recorder.path.read_text().splitlines()]


def test_lines_hold_losses_weights_agreement_and_own_numbers(tmp_path):
    recorder, net = train(tmp_path / "mine", CosineSim())
    first, *steps, validation, outcome = lines(recorder)
    assert (first["setting"], first["run"]["main"], first["run"]["dataset"]) == ("own", "diagnosis", "mine")
    assert [line["step"] for line in steps] == [2, 4, 6, 8]
    assert steps[0]["losses"]["main"] == net.losses()[0].item()
    assert set(steps[0]["losses"]) == {"main", *TASKS}
    assert steps[-1]["weights"] == recorder.reweighter.weights
    products = recorder.reweighter.signals.alignment[0]
    assert steps[-1]["agreement"] == dict(zip(TASKS, (products[1:] / products[0]).tolist(), strict=True))
    assert validation == {"step": 8, "validation_error": 20.0}
    assert outcome == {
        "step": 8,
        "validation_error": 20.0,
        "test_error": 10.0,
        "test_auc": 90.0,
        "weights": recorder.reweighter.weights,
    }
    assert (recorder.folder / "done").exists()


@pytest.mark.parametrize(("method", "agreement", "is_there"), [(ARML(), False, False), (ARML(), True, True)])
def test_agreement_that_the_method_does_not_measure_is_measured_where_wanted(tmp_path, method, agreement, is_there):
    """ARML asks for one direction, which is not the main gradient."""
    recorder, net = train(tmp_path, method, agreement=agreement)
    _, step, *_ = lines(recorder)
    assert ("agreement" in step) == is_there
    if is_there:
        main, aux = net.losses()
        products = alignment([main, *aux.values()], net.trunk, torch.eye(1, 5), engine=pairwise)[0]
        found = (products[1:] / products[0]).tolist()
        assert step["agreement"] == pytest.approx(dict(zip(TASKS, found, strict=True)))
        assert step["cosine"] == measure_agreement(main, aux, net.trunk)["cosine"]


def test_cosines_are_recorded_where_the_method_knows_the_norms(tmp_path):
    """As in the lab's records: the chart then has cosines, which have limits."""
    recorder, net = train(tmp_path, WeightedCosineSim())
    _, step, *_ = lines(recorder)
    assert step["cosine"] == pytest.approx(measure_agreement(*net.losses(), net.trunk)["cosine"], rel=1e-4, abs=1e-4)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The report on the records of three methods."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in SEEDS:
        for name, method in {"ARML": ARML(), "uniform": Uniform(), "main only": Uniform()}.items():
            train(folder / "mine", method, seed=seed, settings={"method": name, "seed": seed, "labels": 50})
        train(
            folder / "mine", ARML(), seed=seed, settings={"method": "ARML", "seed": seed, "labels": 50, "without": "a"}
        )
    train(folder / "mine", ARML(), settings={"method": "ARML", "labels": 50, "lr": 0.1}, finishes=False)
    return make_report(collect([folder]), paper=True, defaults=defaults)


def test_the_report_groups_runs_by_their_settings(page):
    section = page.sections[0]
    assert section.title == "50 diagnosis labels (mine)"
    rows = [[cell.text for cell in row] for row in section.sheets[0].rows]
    assert [row[0] for row in rows] == [
        "Main task only",
        "All targets, uniform weights",
        "All targets + ARML",
        "All targets + ARML, without a",
        "lr 0.1 + ARML",
    ]
    assert {row[1] for row in rows[:4]} == {"11.00 ± 2.48"}
    assert rows[0][-2] == ""  # no weights where the main task is alone
    assert page.repeats == []
    assert not page.remarks


def test_the_report_has_a_verdict_and_curves(page):
    tasks = [row[0].text for row in page.sections[0].sheets[1].rows]
    assert tasks == TASKS
    assert page.answers[0].text
    assert any("weights" in chart.key for chart in page.charts())


def test_the_answer_names_no_command_that_could_not_train_this_loop(page):
    answer = page.answers[0].text
    said = "\n".join([*answer.lines(), *(badge.note for badge in answer.badges)])
    assert "arml compare" not in said
    assert "--seeds" not in said
    assert f'record runs with the setting "without": "{TASKS[1]}"' in said


def test_a_crash_leaves_a_record_that_goes_on_exactly(tmp_path):
    """Killed after step 6, with a checkpoint of step 4: the lines in between are written again."""
    expected, _ = train(tmp_path / "whole", Agreement())

    def go(recorder, net, reweighter, start, stop):
        for _ in range(start, stop):
            reweighter(*net.losses()).backward()

    def make():
        torch.manual_seed(0)
        net = Net()
        reweighter = Reweighter(Agreement(), TASKS, net.trunk, every=1)
        settings = {"settings": {"seed": 0, "dataset": "whole"}, "every": 2, "loggers": ()}
        return Recorder(tmp_path / "killed", reweighter, main="diagnosis", **settings), net, reweighter

    killed, net, reweighter = make()
    go(killed, net, reweighter, 0, 4)
    checkpoint = copy.deepcopy((killed.state_dict(), reweighter.state_dict()))
    go(killed, net, reweighter, 4, 7)
    killed._trace.close()  # so that the test has no open file; a crash closes it, too
    killed.path.write_bytes(killed.path.read_bytes() + b'{"step": 7, "lo')  # cut off
    resumed, net, reweighter = make()
    resumed.load_state_dict(checkpoint[0])
    reweighter.load_state_dict(checkpoint[1])
    go(resumed, net, reweighter, 4, 8)
    resumed.log({"validation_error": 20.0})
    resumed.finish({"error": 10.0, "auc": 90.0})
    assert resumed.path.read_bytes() == expected.path.read_bytes()


def test_a_record_without_its_end_can_be_read(tmp_path):
    recorder, _ = train(tmp_path, ARML(), finishes=False)
    assert result(read(recorder.path).records) is None
    assert not (recorder.folder / "done").exists()


def test_a_record_that_is_gone_begins_again_with_a_warning(tmp_path):
    recorder, net = train(tmp_path, ARML(), finishes=False)
    state = recorder.state_dict()
    recorder.path.unlink()
    with pytest.warns(
        UserWarning, match=r"has 0 bytes, but the checkpoint was made after \d+: the record begins again"
    ):
        recorder.load_state_dict(state)
    for _ in range(2):
        recorder.reweighter(*net.losses())
    recorder.close()
    assert len(lines(recorder)) == 2


def test_steps_after_the_end_and_of_copies_are_not_recorded(tmp_path):
    recorder, net = train(tmp_path, ARML())
    before = recorder.path.read_bytes()
    recorder.load_state_dict(recorder.state_dict())
    copied = copy.deepcopy(recorder.reweighter)
    assert len(recorder.reweighter.watchers) == 1
    assert not copied.watchers
    recorder.close()
    recorder.reweighter(*net.losses())
    assert recorder.path.read_bytes() == before


def test_losses_that_are_missing_or_not_finite_are_left_out(tmp_path):
    net = Net()
    reweighter = Reweighter(Uniform(), TASKS, net.trunk)
    with Recorder(tmp_path, reweighter, every=1, loggers=()) as recorder:
        main, aux = net.losses()
        reweighter(main, {"a": aux["a"], "b": float("nan") * aux["b"]})
        reweighter.eval()
        reweighter(main, aux)
    assert set(lines(recorder)[1]["losses"]) == {"main", "a"}
    assert len(lines(recorder)) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r, f: Recorder(f, r, every=0), "`every` should be a whole number of at least 1. Got 0"),
        (lambda r, f: Recorder(f, r, settings={"seed": -1}), "seed should be a whole number of at least 0. Got -1"),
        (lambda r, f: Recorder(f, r, settings={"labels": "all"}), "labels should be a positive number. Got 'all'"),
        (lambda r, f: Recorder(f, r).log({"error": float("nan")}), "takes finite numbers. Got {'error': nan}"),
        (lambda r, f: Recorder(f, r).finish({"auc": 3.0}), "should hold an 'error', in %.* Got {'auc': 3.0}"),
    ],
)
def test_errors_say_what_to_do(tmp_path, make, message):
    with pytest.raises(ValueError, match=message):
        make(Reweighter(Uniform(), TASKS, Net().trunk), tmp_path)
    assert not list(tmp_path.iterdir())


def test_weights_are_seen_as_bars_and_curves(tmp_path):
    recorder, _ = train(tmp_path, ARML())
    page = recorder._repr_html_()
    assert all(f"<td>{task}</td>" in page for task in TASKS)
    assert page.count("width:100%") == 1
    assert len(recorder.plot().get_lines()) == len(TASKS)
    assert [bar.get_width() for bar in recorder.reweighter.plot().patches] == list(recorder.reweighter.weights.values())
    from matplotlib import pyplot

    pyplot.close("all")


@pytest.mark.slow
def test_recording_costs_next_to_nothing(tmp_path):
    """Steps of a small network, in turns with and without a Recorder; medians."""
    net = torch.nn.Linear(256, 256)
    reweighter = Reweighter(ARML(), ["a"], net, every=10**6)
    x = torch.randn(256, 256)

    def step():
        start = time.process_time()
        out = net(x)
        reweighter(out.square().mean(), {"a": out.abs().mean()}).backward()
        return time.process_time() - start

    found = {True: [], False: []}
    for number in range(40):
        recorder = Recorder(tmp_path / str(number), reweighter, loggers=()) if number % 2 else None
        found[number % 2 == 1].append(sum(step() for _ in range(50)))
        if recorder:
            recorder.close()
    with_record, without = (sorted(found[key])[len(found[key]) // 2] for key in (True, False))
    assert with_record / without < 1.1
