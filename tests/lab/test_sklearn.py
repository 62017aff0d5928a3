"""The scikit-learn estimators: their checks by scikit-learn, accepted tables, and the effect of auxiliary targets."""

import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from arml import ARML, Fixed, Uniform
from arml.sklearn import AuxiliaryClassifier, AuxiliaryRegressor, LabelledFold

DOCS = Path(__file__).parents[2] / "docs" / "sklearn.md"
SMALL = {"n_fits": 1, "networks": 2}
QUICK = {"steps": 40, "lr": 0.03, "pieces": 2, "dropout": 0.0, **SMALL}
BOTH = pytest.mark.parametrize("estimator", [AuxiliaryClassifier, AuxiliaryRegressor])


@parametrize_with_checks([AuxiliaryClassifier(**QUICK), AuxiliaryRegressor(**QUICK)])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator)


def table(rows=60, seed=0):
    """Features, a main target, and two auxiliary targets that are the main one and noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    y = (X[:, 0] > 0).astype(int)
    return X, y, np.stack([X[:, 0], rng.normal(size=rows)], axis=1)


def quick(estimator=AuxiliaryClassifier, **settings):
    return estimator(**{"steps": 30, "lr": 0.02, "random_state": 0, **SMALL, **settings})


def test_weight_goes_to_the_target_that_helps_and_the_path_ends_there():
    X, y, aux = table(200)
    model = AuxiliaryClassifier(method=ARML(), random_state=0, steps=300, every=5, n_fits=1).fit(X, y, aux)
    assert model.weights_path_.shape == (60, 2)
    assert_array_equal(model.weights_path_[-1], list(model.aux_weights_.values()))
    assert model.aux_weights_["aux0"] > 1.5 > 0.5 > model.aux_weights_["aux1"]


def test_auxiliary_targets_teach_what_few_main_labels_cannot():
    """Two labels per digit, and four facts about every image."""
    X, digit = load_digits(return_X_y=True)
    labelled = np.concatenate([np.flatnonzero(digit == d)[:2] for d in range(10)])
    y = np.full(len(X), np.nan)
    y[labelled] = digit[labelled]
    aux = np.stack([digit % 2 == 0, digit >= 5, np.isin(digit, [0, 6, 8, 9]), np.isin(digit, [2, 3, 5, 7])], axis=1)
    alone, helped = (quick(steps=200, lr=0.01).fit(X, y, a).score(X, digit) for a in (None, aux))
    assert helped > alone + 0.05


def test_the_main_target_counts_too():
    """Rows with a main label decide what is predicted; rows without one do not."""
    X, y, aux = table(100)
    few = np.where(np.arange(100) < 50, y, np.nan)
    model = AuxiliaryClassifier(random_state=0, steps=200, **SMALL).fit(X, few, aux)
    flipped = AuxiliaryClassifier(random_state=0, steps=200, **SMALL).fit(X, 1 - few, aux)
    assert model.score(X[50:], y[50:]) > 0.9
    assert flipped.score(X[50:], y[50:]) < 0.1


def test_without_auxiliary_targets_there_are_no_weights():
    X, y, _ = table()
    model = quick().fit(X, y)
    assert model.aux_weights_ == {}
    assert model.weights_path_.shape == (0, 0)
    assert list(model.networks_[0].heads) == ["class"]


def test_weights_of_zero_are_no_auxiliary_targets():
    X, y, aux = table()
    model = quick(method=Fixed([0, 0]), weight_decay=0).fit(X, y, aux)
    assert model.aux_weights_ == {"aux0": 0, "aux1": 0}
    other = quick(method=Fixed([0, 0]), weight_decay=0).fit(X, y, -7 * aux + 3)
    assert_array_equal(model.decision_function(X), other.decision_function(X))
    used = quick(method=Uniform(), weight_decay=0).fit(X, y, aux)
    assert not np.allclose(model.decision_function(X), used.decision_function(X))


@BOTH
def test_rows_without_any_label_change_nothing(estimator):
    """They still decide how features are standardised and cut into pieces, so that is switched off."""
    X, y, aux = table()
    y, aux = y.astype(float), aux.copy()
    y[40:], aux[40:] = np.nan, np.nan
    whole = quick(estimator, standardize=False, pieces=0).fit(X, y, aux)
    part = quick(estimator, standardize=False, pieces=0).fit(X[:40], y[:40], aux[:40])
    assert_array_equal(whole.predict(X), part.predict(X))
    assert whole.aux_weights_ == part.aux_weights_


LABELS = {
    "float with NaN": (np.array([0.0, 1.0, np.nan]), [0.0, 1.0]),
    "objects with None": (np.array(["no", "yes", None], dtype=object), ["no", "yes"]),
    "objects with NaN": (np.array(["no", "yes", np.nan], dtype=object), ["no", "yes"]),
    "numbers with None": (np.array([3, 7, None], dtype=object), [3, 7]),
    "a list": ([False, True, None], [False, True]),
    "text in a series": (pd.Series(["no", "yes", None]), ["no", "yes"]),
    "whole numbers in a series": (pd.Series([3, 7, None], dtype="Int64"), [3.0, 7.0]),
    "objects with NA": (pd.Series(["no", "yes", pd.NA], dtype=object), ["no", "yes"]),
    "text with NA": (pd.Series(["no", "yes", pd.NA], dtype="string"), ["no", "yes"]),
    "a category": (pd.Series(["no", "yes", None], dtype="category"), ["no", "yes"]),
}


@pytest.mark.parametrize("case", LABELS)
def test_missing_labels_may_be_written_in_many_ways(case):
    labels, classes = LABELS[case]
    X = np.array([[-1.0], [1.0], [0.5]])
    model = AuxiliaryClassifier(random_state=0, steps=40).fit(X, labels, X)
    assert model.classes_.tolist() == classes
    assert model.predict(X).tolist() == [classes[0], classes[1], classes[1]]
    assert model.score(X, labels) == 1


def test_three_classes():
    X = np.repeat(np.eye(3), 10, axis=0) + 0.1 * np.random.default_rng(0).normal(size=(30, 3))
    y = np.repeat(["a", "b", "c"], 10)
    model = quick(steps=60).fit(X, y, aux=X)
    assert model.score(X, y) == 1
    assert model.decision_function(X).shape == model.predict_proba(X).shape == (30, 3)
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)


def test_probabilities_of_two_classes_follow_the_logit():
    X, y, aux = table()
    model = quick().fit(X, y, aux)
    logit = model.decision_function(X)
    assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-logit)))
    assert_array_equal(model.predict(X), (logit > 0).astype(int))


def test_a_regressor_answers_in_the_units_of_y():
    X, _, aux = table(200)
    y = 1e6 + 50 * X[:, 0]
    y[150:] = np.nan
    model = AuxiliaryRegressor(random_state=0, steps=300).fit(X, y, aux)
    truth = 1e6 + 50 * X[:, 0]
    assert model.score(X, truth) > 0.9
    assert model.score(X, y) == pytest.approx(1 - ((model.predict(X) - y)[:150] ** 2).mean() / y[:150].var())


def test_columns_decide_what_is_asked_about_them():
    rng = np.random.default_rng(0)
    X, y, _ = table(80)
    aux = pd.DataFrame(
        {
            "two": rng.choice([3.5, 7], size=80),
            "kinds": rng.integers(5, size=80).astype(float),
            "many": np.arange(80),
            "size": rng.normal(size=80),
            "text": rng.choice(["a", "b", "c"], size=80),
            "flag": rng.random(80) > 0.5,
        }
    )
    aux.loc[::7, "kinds"] = np.nan
    aux.loc[::5, "text"] = None
    model = quick().fit(X, y, aux)
    assert list(model.aux_weights_) == list(aux.columns)
    outputs = {"two": 1, "kinds": 5, "many": 1, "size": 1, "text": 3, "flag": 1}
    assert model.networks_[0].heads["aux"].out_features == sum(outputs.values())
    for name, expected in outputs.items():
        assert quick(steps=1).fit(X, y, aux[[name]]).networks_[0].heads["aux"].out_features == expected


def test_numbers_among_objects_are_numbers():
    """A table that also has text becomes an array of objects, whether or not something is missing."""
    X, y, numbers = table(80)
    mixed = pd.DataFrame({"size": numbers[:, 0], "text": np.where(numbers[:, 1] > 0, "a", "b"), "many": np.arange(80)})
    objects = mixed.to_numpy()
    assert objects.dtype == object
    model = quick().fit(X, y, objects)
    assert model.networks_[0].heads["aux"].out_features == 3
    assert quick().fit(X, y.astype(object)).classes_.dtype.kind == "i"
    assert quick(AuxiliaryRegressor).fit(X, objects[:, 0]).score(X, objects[:, 0]) > 0


def test_a_feature_that_never_varied_is_ignored():
    X, y, aux = table()
    X[:, 3] = 0.1
    model = quick().fit(X, y, aux)
    changed = X.copy()
    changed[:, 3] = 1e6
    assert_array_equal(model.decision_function(changed), model.decision_function(X))


@BOTH
def test_training_repeats_exactly_and_leaves_the_global_state_alone(estimator):
    X, y, aux = table()
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    numpys = np.random.get_state()[1].copy()  # noqa: NPY002 -- the state that must not move
    first = quick(estimator, method=ARML(lr=0.5)).fit(X, y, aux)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert_array_equal(np.random.get_state()[1], numpys)  # noqa: NPY002
    torch.manual_seed(99)
    again = clone(first).fit(X, y, aux)
    assert_array_equal(first.predict(X), again.predict(X))
    assert_array_equal(first.weights_path_, again.weights_path_)
    refit = again.fit(X, y, aux)
    assert_array_equal(first.weights_path_, refit.weights_path_)
    other = quick(estimator, random_state=1, method=ARML(lr=0.5)).fit(X, y, aux)
    assert not np.allclose(first.weights_path_[-1], other.weights_path_[-1], atol=1e-6)


def test_a_fitted_model_survives_a_pickle():
    X, y, aux = table()
    model = quick(method=ARML(lr=0.5)).fit(X, y, aux)
    read = pickle.loads(pickle.dumps(model))
    assert_array_equal(read.predict_proba(X), model.predict_proba(X))
    assert read.aux_weights_ == model.aux_weights_
    assert read.fit(X, y, aux).aux_weights_ == model.aux_weights_


def test_settings_reach_the_training():
    X, y, aux = table()
    model = quick().set_params(hidden=7, layers=3, every=4, method=Uniform()).fit(X, y, aux)
    assert model.networks_[0].heads["class"].in_features == 7
    assert [name for name in dict(model.networks_[0].trunk.named_children()) if "linear" in name][-1] == "linear3"
    assert model.weights_path_.shape == (8, 2)
    assert model.aux_weights_ == {"aux0": 1, "aux1": 1}
    little, much = (quick(aux_scale=scale).fit(X, y, aux).predict_proba(X) for scale in (0.1, 1))
    assert abs(little - much).max() > 0.01


def test_the_step_size_falls_to_zero_and_decay_shrinks_parameters(monkeypatch):
    X, y, aux = table()
    seen, step = [], torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self: (seen.append(self.param_groups[0]["lr"]), step(self)))
    quick(steps=4, lr=0.1).fit(X, y, aux)
    assert seen == pytest.approx([0.1, 0.075, 0.05, 0.025])
    lengths = [
        sum(
            float(p.detach().square().sum()) for p in quick(weight_decay=decay).fit(X, y, aux).networks_[0].parameters()
        )
        for decay in (0, 5)
    ]
    assert lengths[1] < lengths[0] / 2


def test_features_far_from_zero_are_standardised():
    X, y, aux = table(100)
    far = X * 1e-4 + 1e5
    assert AuxiliaryClassifier(random_state=0, steps=200).fit(far, y, aux).score(far, y) > 0.95
    assert AuxiliaryClassifier(random_state=0, steps=200, standardize=False).fit(X, y, aux).score(X, y) > 0.95


def test_in_a_pipeline():
    X, y, aux = table()
    pipeline = make_pipeline(MinMaxScaler(), quick())
    pipeline.fit(X, y, auxiliaryclassifier__aux=aux)
    assert set(pipeline[-1].aux_weights_) == {"aux0", "aux1"}


class Watched(AuxiliaryClassifier):
    """Checks that features and auxiliary labels are split alike: column 0 of both is the same."""

    def fit(self, X, y, aux=None):
        assert_array_equal(X[:, 0], aux[:, 0])
        return super().fit(X, y, aux)


@pytest.mark.parametrize("routing", [False, True])
def test_a_search_divides_auxiliary_labels_along_with_the_rows(routing):
    X, y, aux = table()
    few = np.where(np.arange(60) % 3 == 0, y, np.nan)
    with sklearn.config_context(enable_metadata_routing=routing):
        model = Watched(steps=20, lr=0.02, random_state=0)
        model = model.set_fit_request(aux=True) if routing else model
        search = GridSearchCV(model, {"method": [ARML(), Uniform()]}, cv=KFold(3), error_score="raise")
        search.fit(X, few, aux=aux)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert set(search.best_estimator_.aux_weights_) == {"aux0", "aux1"}


def test_routing_through_a_pipeline():
    X, y, aux = table()
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(MinMaxScaler(), quick().set_fit_request(aux=True))
        search = GridSearchCV(pipeline, {"auxiliaryclassifier__hidden": [4, 8]}, cv=2, error_score="raise")
        search.fit(X, y, aux=aux)
    assert set(search.best_estimator_[-1].aux_weights_) == {"aux0", "aux1"}


def test_several_fits_are_averaged_and_their_spread_is_known():
    X, y, aux = table()
    both = quick(n_fits=2, method=ARML(lr=0.5)).fit(X, y, aux)
    assert len(both.networks_) == 2
    outputs = [network(both._inputs(X)).detach().numpy()[:, 0] for network in both.networks_]
    assert not np.allclose(*outputs, atol=1e-3)
    assert_allclose(both.decision_function(X), np.mean(outputs, axis=0))
    first = quick(n_fits=1, method=ARML(lr=0.5)).fit(X, y, aux)
    a = first.aux_weights_["aux0"]
    b = 2 * both.aux_weights_["aux0"] - a  # the mean is of this one and the first
    assert both.aux_weights_std_["aux0"] == pytest.approx(abs(a - b) / 2**0.5)
    assert both.aux_weights_std_["aux0"] > 0
    assert np.isnan(first.aux_weights_std_["aux0"])


def test_methods_have_names():
    X, y, aux = table()
    named, made = (quick(method=method).fit(X, y, aux) for method in ("arml", ARML()))
    assert named.aux_weights_ == made.aux_weights_
    assert quick(method="agreement").fit(X, y, aux).aux_weights_ == quick().fit(X, y, aux).aux_weights_
    with pytest.raises(ValueError, match=r"Unknown `method` 'amrl'. Did you mean 'arml'.* Known: uniform"):
        quick(method="amrl").fit(X, y, aux)
    with pytest.raises(ValueError, match="Unknown `method`"):
        quick(method="arml_full").fit(X, y)


def test_verbose_prints_ten_lines_per_fit(capsys):
    X, y, aux = table()
    quick(n_fits=2, verbose=1, steps=20).fit(X, y, aux)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 20
    assert re.fullmatch(r"fit 2 of 2, step 20 of 20: main loss \d\.\d+; weights aux0 \d\.\d\d, aux1 .*", lines[-1])
    quick().fit(X, y)
    assert not capsys.readouterr().out


def test_auxiliary_labels_are_aligned_on_the_index():
    X, y, aux = table()
    rows = pd.DataFrame(X).rename(lambda row: f"row {row}").rename(columns=str)
    labels = pd.DataFrame(aux, index=rows.index, columns=["a", "b"])
    expected = quick().fit(rows, y, labels).decision_function(rows)
    turned = quick().fit(rows, y, labels[::-1]).decision_function(rows)
    assert_array_equal(turned, expected)
    assert_array_equal(quick().fit(rows, y, aux).decision_function(rows), expected)  # no index: by position
    with pytest.raises(ValueError, match=r"different rows: .*\[0, 1, 2\].*'row 0'"):
        quick().fit(rows, y, labels.reset_index(drop=True))


def test_minus_one_is_asked_about():
    X, y, aux = table()
    semi = np.where(np.arange(60) < 40, y, -1)
    with pytest.raises(ValueError, match=r"Does -1 in `y` mean a missing label.* -1, 0, 1.*`missing=-1`"):
        quick().fit(X, semi, aux)
    missing = quick(missing=-1).fit(X, semi, aux)
    expected = quick().fit(X, np.where(semi < 0, np.nan, semi), aux)
    assert missing.classes_.tolist() == [0, 1]
    assert_array_equal(missing.decision_function(X), expected.decision_function(X))
    assert missing.score(X, semi) == expected.score(X[:40], y[:40])
    assert quick(missing=None).fit(X, semi, aux).classes_.tolist() == [-1, 0, 1]
    assert quick().fit(X, 2 * y - 1, aux).classes_.tolist() == [-1, 1]
    with pytest.raises(ValueError, match="Does -1 in column 'aux0' of `aux`"):
        quick().fit(X, y, semi[:, None])


def test_a_search_over_partly_labelled_rows():
    X, y, aux = table()
    few = np.where(np.arange(60) % 3 == 0, y, np.nan)
    folds = LabelledFold(4)
    tested = np.concatenate([test for _, test in folds.split(X, few)])
    assert sorted(tested) == list(range(0, 60, 3))
    for train, test in folds.split(X, few):
        assert set(train) | set(test) == set(range(60))
        assert not set(train) & set(test)
        assert set(few[test]) == {0, 1}
    search = GridSearchCV(quick(steps=10), {"method": ["arml", "uniform"]}, cv=folds, error_score="raise")
    search.fit(X, few, aux=aux)
    assert search.n_splits_ == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    with pytest.raises(ValueError, match="3 of 60 rows have a label, too few for 4 folds"):
        next(folds.split(X, np.where(np.arange(60) < 3, y, np.nan)))


def test_names_of_features():
    X, y, aux = table()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = quick().fit(frame, y, aux)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.n_features_in_ == 4
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("dcba")])


X, Y, AUX = table()
NONE = np.full(60, np.nan)
WRONG = {
    "length": ({"aux": AUX[:-1]}, "60 rows of X.*59"),
    "flat": ({"aux": AUX[:, 0]}, r"\[N, K\].*\(60,\).*reshape\(-1, 1\)"),
    "no column": ({"aux": AUX[:, :0]}, r"\(60, 0\)"),
    "constant": ({"aux": np.stack([AUX[:, 0], np.ones(60)], axis=1)}, "'aux1'.*only 1"),
    "all missing": ({"aux": np.stack([NONE, AUX[:, 0]], axis=1)}, "'aux0'.*no label"),
    "constant text": ({"aux": pd.DataFrame({"t": ["same"] * 60})}, "'t'.*only 'same'"),
    "infinite": ({"aux": np.where(AUX > 1, np.inf, AUX)}, "aux0.*infinity"),
    "dates": ({"aux": pd.DataFrame({"day": pd.date_range("2020-01-01", periods=60)})}, "'day'.*dates"),
    "twice": ({"aux": pd.DataFrame(AUX, columns=["a", "a"])}, "different names.*a, a"),
    "named main": (
        {"aux": pd.DataFrame(AUX, columns=["a", "main"])},
        "'main', as the main target is. Rename the column",
    ),
    "no main label": ({"y": NONE}, "No row has a main label"),
    "one class": ({"y": np.ones(60)}, "at least two classes.*1.0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_errors_say_what_was_given(case):
    given, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        quick().fit(**{"X": X, "y": Y, "aux": AUX, **given})


@pytest.mark.parametrize("y", [np.full(60, 3.0), NONE])
def test_a_number_that_does_not_vary_is_refused(y):
    with pytest.raises(ValueError, match="at least two different values"):
        quick(AuxiliaryRegressor).fit(X, y)


SETTINGS = {
    "hidden": 0,
    "layers": 1.5,
    "steps": 0,
    "batch_size": -1,
    "lr": 0,
    "weight_decay": -1,
    "every": 0,
    "aux_scale": 0,
    "method": ARML,
    "dropout": 1,
    "pieces": -1,
    "networks": 0,
    "n_fits": 0,
}


@pytest.mark.parametrize("given", [{"steps": 10.0}, {"steps": "a"}, {"every": 0}, {"every": 2.5}, {"lr": "fast"}])
def test_settings_are_checked_without_auxiliary_targets_too(given):
    ((name, value),) = given.items()
    with pytest.raises(ValueError, match=f"`{name}` should be .*{re.escape(repr(value))}"):
        quick(**given).fit(X, Y)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_checked_when_they_are_used(name):
    model = quick(**{name: SETTINGS[name]})
    with pytest.raises(ValueError, match=f"`{name}` .*{re.escape(repr(SETTINGS[name]))}"):
        model.fit(X, Y, AUX)


def test_nothing_is_predicted_before_something_is_learned():
    model = quick()
    with pytest.raises(NotFittedError):
        model.predict(X)
    with pytest.raises(ValueError, match="rows of X"):
        model.fit(X, Y, AUX[:5])
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_score_needs_labels():
    model = quick().fit(X, Y)
    with pytest.raises(ValueError, match=r"None of the 60 rows.*LabelledFold"):
        model.score(X, NONE)
    weights = np.arange(60.0)
    expected = ((model.predict(X) == Y) * weights).sum() / weights.sum()
    assert model.score(X, Y, sample_weight=weights) == pytest.approx(expected)
    half = np.where(np.arange(60) < 30, Y, np.nan)
    assert model.score(X, half, sample_weight=weights) == model.score(X[:30], Y[:30], sample_weight=weights[:30])


def test_the_examples_of_the_documentation_run(capsys):
    """Unchanged, except for one seed instead of five: the whole comparison takes ten seconds."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", DOCS.read_text(), flags=re.DOTALL))
    assert code.count("range(5)") == 1
    exec(code.replace("range(5)", "range(1)"), {})
    score, weights, *table, best = capsys.readouterr().out.splitlines()
    assert float(score) > 0.7
    assert weights.startswith("{'even'")
    assert [line.split(" ")[0] for line in table] == ["main", "equal", "ARML"]
    assert best.startswith("{'model__method'")
