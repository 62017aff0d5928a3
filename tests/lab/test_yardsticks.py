"""What simple models make of the same labels."""

import json

import pytest
import torch
from lab.own_data import write_patients

from arml.lab import train_run
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
from arml.lab.yardsticks import MOST_LABELS, Labelled, measure_yardsticks

TINY = {"steps": 2, "evaluate_every": 2, "method": "uniform"}


def every_row(x, y):
    return Labelled(x, y, torch.arange(len(y)))


def test_errors_of_two_classes_that_a_person_can_check():
    """-1 and 1 are known, so the border is at 0: one of five test examples is on the wrong side, two of five are 1."""
    few = every_row(torch.tensor([[-1.0], [1.0]]), torch.tensor([0, 1]))
    test = every_row(torch.tensor([[-3.0], [-0.5], [0.5], [2.0], [4.0]]), torch.tensor([0, 0, 0, 1, 1]))
    found = measure_yardsticks(few, test)
    assert found == pytest.approx({"logistic_regression": 20.0, "most_frequent_class": 40.0})


def test_errors_of_a_number_that_a_person_can_check():
    """Ridge with penalty 1 on (-1, -1), (1, 1): slope 2 / (2 + 1), so a third of every label is missed."""
    few = every_row(torch.tensor([[-1.0], [1.0]]), torch.tensor([-1.0, 1.0]))
    test = every_row(torch.tensor([[-3.0], [3.0]]), torch.tensor([-3.0, 3.0]))
    found = measure_yardsticks(few, test, numeric=True)
    assert found == pytest.approx({"ridge_regression": 100 / 9, "mean": 100.0})


def test_only_the_named_rows_are_used():
    x, y = torch.tensor([[-1.0], [1.0], [-1.0], [1.0]]), torch.tensor([0, 1, 1, 0])
    few, test = Labelled(x, y, torch.tensor([0, 1])), Labelled(x, y, torch.tensor([2, 3]))
    assert measure_yardsticks(few, test)["logistic_regression"] == 100.0
    assert measure_yardsticks(few, few)["logistic_regression"] == 0.0


def test_large_images_are_averaged_before():
    """A 64 x 64 image that differs in one quarter has the answers of its averaged copy."""
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(20) % 2
    x = torch.randint(0, 100, (20, 3, 64, 64), generator=draw, dtype=torch.uint8)
    x[y == 1, :, :32, :32] += 100
    examples = every_row(x, y)
    small = every_row(x.float().reshape(20, 3, 16, 4, 16, 4).mean((3, 5)) / 255, y)
    assert measure_yardsticks(examples, examples) == measure_yardsticks(small, small)


def test_there_is_no_yardstick_where_it_makes_no_sense():
    x, y = torch.zeros(MOST_LABELS + 1, 1), torch.arange(MOST_LABELS + 1) % 2
    test = every_row(x[:4], y[:4])
    assert measure_yardsticks(every_row(x, y), test) == {}
    assert measure_yardsticks(Labelled(x, y, torch.tensor([], dtype=torch.int64)), test) == {}
    assert measure_yardsticks(Labelled(x, y, torch.tensor([0, 2])), test) == {}, "one class only"


def test_records_of_all_settings_hold_them(tmp_path):
    classes = {"logistic_regression", "most_frequent_class"}
    digits = train_run(SemiSupervised(learner="supervised", **TINY), tmp_path)
    assert set(digits["yardsticks"]) == classes
    assert 5 < digits["yardsticks"]["logistic_regression"] < 40
    assert digits["yardsticks"]["most_frequent_class"] == pytest.approx(90)
    yeast = train_run(MultiLabel(learner="main_only", network="mlp-8", **TINY), tmp_path)
    assert yeast["yardsticks"]["most_frequent_class"] == pytest.approx(yeast["test_majority_error"])
    domains = train_run(Domains(learner="main_only", network="plain-16", **TINY), tmp_path)
    assert set(domains["yardsticks"]) == classes
    last = next(tmp_path.glob("digits-digits-*/record.jsonl")).read_text().splitlines()[-1]
    assert json.loads(last)["yardsticks"] == domains["yardsticks"]


def test_a_number_has_its_own_and_no_label_has_none(tmp_path):
    table = str(write_patients(tmp_path))
    run = MultiLabel(dataset="table", table=table, main="score", aux=("third",), labels=30, network="mlp-8", **TINY)
    assert set(train_run(run, tmp_path)["yardsticks"]) == {"mean"}, "the ridge regression has a line of its own"
    unsteered = Domains(learner="baseline", shots=0, network="plain-16", **TINY)
    assert "yardsticks" not in train_run(unsteered, tmp_path)
