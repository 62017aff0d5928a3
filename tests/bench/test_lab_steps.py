"""Whole steps of arml train, on data of the paper's shapes."""

from dataclasses import replace

import pytest
import torch

from arml.bench.lab_steps import CASES, measure_step, process_seconds
from arml.bench.lab_table import lab_sheet
from arml.bench.made_data import make_parts, paper_run
from arml.bench.result import LabStep, Result, read_result, write_result
from arml.bench.session import Session
from arml.bench.timing import Plan
from arml.lab.train import descend, losses_of


@pytest.mark.parametrize(("setting", "learner"), [case for case in CASES if case[1] in ("s4l", "joint", "jt", "jigen")])
def test_made_data_train_a_step(setting, learner):
    run = paper_run(setting, learner, 2)
    small = {"ssl": "plain-4", "mlc": "small-4", "dg": "small-4"}[setting]
    run = replace(run, network=small, **({} if setting == "ssl" else {"image_size": 18}))
    parts = make_parts(run)
    assert torch.isfinite(descend(parts, losses_of(parts, 0)))


def test_a_step_is_divided_into_parts_and_its_operations_are_counted(tmp_path):
    run = replace(paper_run("ssl", "supervised", 4), network="plain-8")
    small, large = (measure_step(replace(run, supervised_batch=size), Plan(repeats=1)) for size in (4, 16))
    assert (small.images, large.images) == (8, 20)  # with the unlabelled ones
    assert large.gflops == pytest.approx(4 * small.gflops, rel=0.01)
    assert 1 < small.ratio < 10
    assert 0 < small.data + small.losses + small.optimiser < 1
    assert small.ratio * (1 - small.data - small.losses - small.optimiser) == pytest.approx(1, rel=0.2)
    result = Result({}, {}, lab=(small,), lab_processes=(2.0, 1.0), lab_processor=(1.8, 1.2))
    write_result(result, tmp_path, {})
    assert read_result(tmp_path / "cost.json") == result
    assert "2.00 times as fast" in lab_sheet(result).notes[-1]
    assert "1.80 s and 1.20 s: 1.50 times less" in lab_sheet(result).notes[-1]


def test_the_table_says_whether_data_and_bookkeeping_stay_below_their_limit():
    fine = LabStep("ssl", "s4l", "wrn-28-2", 8, 1, 1, 1, 100.0, 1.01, 0.01, 0.02, 0.01, 1.0, 1e6)
    dear = replace(fine, learner="vat", data=0.05)
    assert (
        "at most 4.0 % of a step (ssl s4l); the aim is less than 5 %" in lab_sheet(Result({}, {}, lab=(fine,))).notes[1]
    )
    note = lab_sheet(Result({}, {}, lab=(fine, dear))).notes[1]
    assert "at most 8.0 % of a step (ssl vat); the aim is less than 5 %: missed" in note


def test_a_process_takes_a_share_of_the_work_of_one():
    run = replace(paper_run("ssl", "supervised", 8), network="plain-8")
    wall, processor = process_seconds(run, 1, 1)
    assert wall > 0
    assert processor > 0


def test_the_part_alone_measures_no_other_network():
    assert Session(parts=("lab",)).chosen_kinds() == []
    assert Session(parts=("lab", "phases")).chosen_kinds()
