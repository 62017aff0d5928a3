"""Metrics on cases worked by hand."""

import math

import pytest
import torch
from sklearn.metrics import r2_score, roc_auc_score
from torch import nan, tensor

from arml.lab.data.targets import Target
from arml.lab.metrics import metrics

BINARY, KINDS, NUMBER = Target(tensor([]), ("no", "yes")), Target(tensor([]), ("a", "b", "c")), Target(tensor([]))


def column(*values):
    return tensor(values).unsqueeze(1)


def test_two_classes():
    """Ranked 4, 3, 2, 0.2, -5 the labels are yes, no, yes, no, no."""
    found = metrics(BINARY, column(0.2, 4.0, -5.0, 2.0, 3.0, 9.0), tensor([0.0, 1.0, 0.0, 1.0, 0.0, nan]))
    assert found == pytest.approx(
        {
            "error": 40.0,
            "majority_error": 40.0,
            "average_precision": 100 * (1 / 1 + 2 / 3) / 2,
            "auc": 100 * 5 / 6,  # pairs of a yes and a no in the right order
        }
    )


def test_three_classes():
    """Odds in small whole numbers; class c is nobody's label."""
    odds = tensor([[6.0, 1, 1], [3, 4, 1], [4, 3, 1], [1, 6, 1]])
    found = metrics(KINDS, odds.log(), tensor([0.0, 0.0, 1.0, 1.0]))
    # Of a: shares 6/8, 4/8, 3/8, 1/8 belong to a, b, a, b; of b: 6/8, 4/8, 3/8, 1/8 belong to b, a, b, a.
    expected = {"error": 50.0, "majority_error": 50.0, "average_precision": 100 * (1 + 2 / 3) / 2, "auc": 75.0}
    assert found == pytest.approx(expected)


def test_classes_are_ranked_by_probability_as_scikit_learn_does():
    z, y = torch.randn(60, 3) * 3, torch.randint(3, (60,))
    expected = roc_auc_score(y, z.double().softmax(1), multi_class="ovr")
    assert metrics(KINDS, z, y.float())["auc"] == pytest.approx(100 * expected)


def test_numbers():
    """Labels 1, 3, 5 have variance 8/3; the answers are off by 1, 0 and 2."""
    found = metrics(NUMBER, column(2.0, 3.0, 7.0, 9.0), tensor([1.0, 3.0, 5.0, nan]))
    expected = {"error": 100 * (5 / 3) / (8 / 3), "majority_error": 100.0, "rmse": math.sqrt(5 / 3)}
    assert found == pytest.approx(expected)
    z, y = torch.randn(30), torch.randn(30) * 7 + 1000
    assert metrics(NUMBER, z.unsqueeze(1), y)["error"] == pytest.approx(100 - 100 * r2_score(y.double(), z.double()))


def test_the_baselines_reach_their_own_error():
    y = tensor([0.0, 2.0, 2.0, 1.0])
    always_c = torch.eye(3)[[2]].expand(4, -1)
    assert metrics(KINDS, always_c, y)["error"] == metrics(KINDS, always_c, y)["majority_error"] == 50
    mean = y.mean().expand(4).unsqueeze(1)
    assert metrics(NUMBER, mean, y)["error"] == pytest.approx(metrics(NUMBER, mean, y)["majority_error"])


UNDEFINED = {
    "one class": (BINARY, column(1.0, -1.0), tensor([1.0, 1.0]), {"error": 50.0, "majority_error": 0.0}),
    "one of three": (KINDS, torch.eye(3), tensor([1.0, 1.0, nan]), {"error": 50.0, "majority_error": 0.0}),
    "diverged": (BINARY, column(nan, 1.0), tensor([1.0, 0.0]), {"error": 100.0, "majority_error": 50.0}),
    "always no": (BINARY, column(nan, nan, -1.0), tensor([0.0, 0.0, 0.0]), {"error": 200 / 3, "majority_error": 0.0}),
    "infinite": (BINARY, column(math.inf, 1.0), tensor([1.0, 1.0]), {"error": 50.0, "majority_error": 0.0}),
    "one of three diverged": (
        KINDS,
        tensor([[1.0, nan, 0], [1, 0, 0]]),
        tensor([0.0, 0.0]),
        {"error": 50.0, "majority_error": 0.0},
    ),
}


@pytest.mark.parametrize("case", UNDEFINED)
def test_what_is_undefined_is_left_out(case):
    target, outputs, labels, expected = UNDEFINED[case]
    assert metrics(target, outputs, labels) == pytest.approx(expected)


WITHOUT_ERROR = {
    "no variance": (NUMBER, column(1.1, 1.1, 1.1), tensor([0.1, 0.1, 0.1]), "The 3 labels of a number do not differ"),
    "one number": (NUMBER, column(3.0), tensor([1.0]), "The 1 labels .* at least two different ones"),
    "no labels": (NUMBER, column(3.0, 4.0), tensor([nan, nan]), "None of the 2 rows has a label"),
    "no class labels": (BINARY, column(3.0, 4.0), tensor([nan, nan]), "None of the 2 rows has a label"),
    "diverged": (NUMBER, column(nan, 1.0, 2.0), tensor([1.0, 2.0, 3.0]), "Training diverged: 1 of 3 .* Lower the step"),
}


@pytest.mark.parametrize("case", WITHOUT_ERROR)
def test_an_error_that_cannot_be_told_is_refused(case):
    target, outputs, labels, message = WITHOUT_ERROR[case]
    with pytest.raises(ValueError, match=message):
        metrics(target, outputs, labels)


def test_numbers_far_from_zero_are_told_apart():
    seconds = tensor([1.7e9 - 3, 1.7e9 + 3], dtype=torch.float64)
    assert metrics(NUMBER, seconds.unsqueeze(1) + 1, seconds)["error"] == pytest.approx(100 / 9)


def test_graphs_are_left_alone():
    outputs = torch.randn(6, 3, requires_grad=True)
    assert metrics(KINDS, outputs, tensor([0.0, 1, 2, 0, 1, 2])).keys() >= {"error", "auc"}
    assert outputs.grad is None


@pytest.mark.parametrize("outputs", [torch.zeros(4), torch.zeros(4, 2), torch.zeros(3, 1)])
def test_outputs_of_another_shape_are_refused(outputs):
    with pytest.raises(ValueError, match=r"\[4, 1\] for 4 labels"):
        metrics(BINARY, outputs, torch.zeros(4))
