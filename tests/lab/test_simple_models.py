"""Models without a network: what each of them may know."""

import json

import numpy as np
import pytest
import torch
from lab.own_data import write_patients

from arml.lab import train_run
from arml.lab.data.target_splits import fold_labels
from arml.lab.data.targets import Target
from arml.lab.metrics import metrics
from arml.lab.run_kinds import MultiLabel
from arml.lab.simple_models import SIMPLE_MODELS, Problem


@pytest.fixture(autouse=True)
def small_forests(monkeypatch):
    monkeypatch.setattr("arml.lab.simple_models.TREES", 30)


def problem(kind, seed=0, labels=20):
    """A main target that depends on the square of an input, which an auxiliary target knows for all rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(300, 4))
    truth = x[:, 0] ** 2 - 1 + 0.1 * rng.normal(size=300)
    aux = {
        "twin": Target(torch.tensor(truth)),
        "coin": Target(torch.tensor(rng.integers(2, size=300).astype(float)), ("0", "1")),
    }
    values = {"number": truth, "two": truth > -0.5, "three": np.digitize(truth, [-0.7, 0])}[kind]
    classes = {"number": (), "two": ("no", "yes"), "three": ("low", "middle", "high")}[kind]
    main = Target(torch.tensor(values.astype(float)), classes)
    return Problem(x, main, aux, fold_labels(main, labels=labels, seed=seed, folds=5), seed)


def error(name, given):
    answers = SIMPLE_MODELS[name](given)
    return metrics(given.main, answers, given.main.values[given.rows.test])["error"]


@pytest.mark.parametrize("kind", ["number", "two"])
def test_knowing_more_helps(kind):
    """A regression on the inputs cannot see a square; forests predict the auxiliary; its column tells nearly all."""
    given = problem(kind)
    found = {name: error(name, given) for name in SIMPLE_MODELS}
    assert found["aux_inputs"] < found["stacking"] < found["linear"]
    assert found["forest"] < found["linear"] + 10


def test_more_than_two_classes_have_a_logit_each():
    given = problem("three")
    answers = SIMPLE_MODELS["linear"](given)
    assert answers.shape == (len(given.rows.test), 3)
    assert torch.allclose(answers.exp().sum(dim=1), torch.ones(len(answers), dtype=answers.dtype))


def test_test_labels_are_not_used():
    given = problem("two")
    values = given.main.values.clone()
    values[given.rows.test] = 1 - values[given.rows.test]
    turned = given._replace(main=Target(values, given.main.classes))
    for name in ("linear", "forest"):
        assert torch.equal(SIMPLE_MODELS[name](given), SIMPLE_MODELS[name](turned))


def test_labels_for_validation_teach_too():
    given = problem("two", labels=40)
    division = fold_labels(given.main, labels=40, seed=0, folds=5, choosing=True)
    assert torch.equal(SIMPLE_MODELS["linear"](given), SIMPLE_MODELS["linear"](given._replace(rows=division)))


def test_a_simple_model_leaves_a_record_like_any_other(tmp_path):
    table = write_patients(tmp_path)
    run = MultiLabel(
        dataset="table", table=str(table), main="ill", aux=("score",), learner="linear", method="uniform", labels=None
    )
    outcome = train_run(run, tmp_path / "runs")
    assert {"test_error", "test_auc", "weights", "step"} <= set(outcome)
    (record,) = (tmp_path / "runs").glob("*/record.jsonl")
    first, last = map(json.loads, record.read_text().splitlines())
    assert first["run"]["learner"] == "linear"
    assert last == outcome
    assert train_run(run, tmp_path / "runs") == outcome, "a finished run is not repeated"
