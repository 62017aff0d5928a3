"""The estimators: a classifier and a regressor."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor

from arml.lab.data.piecewise import PiecewiseLinear
from arml.lab.data.table_features import scaler_of
from arml.lab.data.targets import Target
from arml.lab.tasks.attributes import Attributes
from arml.methods import Method
from arml.sklearn.labels import ASK, LABELS, aux_targets, check_column, class_target, clear_missing, find_labels
from arml.sklearn.training import Fitted, Settings, train

Array: TypeAlias = "np.ndarray[Any, Any]"

CHUNK = 10_000
"""Rows predicted at once, so that memory does not grow with their number."""

_ROWS = {"dtype": np.float64, "ensure_min_samples": 2}
_COUNTS = ("hidden", "layers", "networks", "steps", "batch_size", "every", "n_fits")


class _Estimator(ABC):
    """The common part of classifier and regressor: everything but the main target."""

    def __init__(
        self,
        method: Method[Any] | str | None = None,
        *,
        hidden: int = 64,
        layers: int = 2,
        networks: int = 4,
        dropout: float = 0.3,
        pieces: int = 8,
        steps: int = 300,
        batch_size: int = 64,
        lr: float = 0.003,
        weight_decay: float = 0.3,
        every: int | None = None,
        aux_scale: float = 1.0,
        standardize: bool = True,
        missing: Any = ASK,
        n_fits: int = 2,
        random_state: int | np.random.RandomState | None = None,
        device: str | None = None,
        verbose: int = 0,
    ) -> None:
        """Stores the settings. As everywhere in scikit-learn, ``fit`` checks them.

        Args:
            method: how auxiliary targets are weighted: a name such as ``"arml"``, or a method such as ``ARML()``;
                ``None``: the recommended one.
            hidden: units per layer.
            layers: layers of each perceptron.
            networks: perceptrons that are trained together, with common weights, and averaged.
            dropout: share of the units that are switched off at random in training.
            pieces: pieces in which the networks also see each feature with more than four values; 0: none.
            steps: training steps.
            batch_size: rows per step with a main label, and rows per step with auxiliary labels; fewer rows than that
                are all used.
            lr: step size of AdamW at the start; it falls linearly to 0.
            weight_decay: w; every step multiplies all parameters by 1 - w times the step size.
            every: steps between two updates of the weights; ``None``: the schedule of the method.
            aux_scale: multiplies every auxiliary loss.
            standardize: scale features to mean 0 and variance 1 over the training rows; constant features become 0.
            missing: a label in ``y`` and ``aux`` that means a missing one, such as -1, beside NaN and None; ``None``:
                no other; ``"ask"``: no other, but -1 beside the classes 0, 1, ... is an error.
            n_fits: independent fits, from other random numbers. Predictions and weights are their averages.
            random_state: an integer makes training repeatable.
            device: where to train: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``; ``"auto"`` is the best there is.
                ``None``: the CPU, where the trained network ends up anyway.
            verbose: above 0, print the main loss and the weights ten times per fit.
        """
        self.method = method
        self.hidden = hidden
        self.layers = layers
        self.networks = networks
        self.dropout = dropout
        self.pieces = pieces
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.every = every
        self.aux_scale = aux_scale
        self.standardize = standardize
        self.missing = missing
        self.n_fits = n_fits
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X: Any, y: Any, aux: Any = None) -> Any:  # noqa: N803 -- scikit-learn's name
        """Learns from rows ``X`` [N, F], the main target ``y`` [N] and the auxiliary targets ``aux`` [N, K].

        Labels may be missing in ``y`` and ``aux``: as NaN, or as None in an array of objects, or as ``missing`` says.
        Each row is used for the targets it has labels for.

        Args:
            X: numbers, none missing.
            y: classes for the classifier, numbers for the regressor.
            aux: a DataFrame, or an array, whose columns are then named ``aux0``, ``aux1``, ... Columns of text, of two
                different numbers, or of up to 20 different whole numbers hold classes; all others hold numbers.
                If ``X`` and ``aux`` have an index, rows with the same index belong together. ``None``: learn the main
                target alone.
        """
        self._check_settings()
        x, labels = validate_data(self, X, y, validate_separately=(_ROWS, LABELS))
        check_consistent_length(x, labels)
        labels = clear_missing(column_or_1d(labels, warn=True), "`y`", self.missing)
        rows = torch.arange(len(x))
        self._main = Attributes({"main": self._target(labels)}, rows)
        targets = {} if aux is None else dict(aux_targets(aux, X, len(x), self.missing))
        self.scaler_ = scaler_of(x) if self.standardize else None
        self._pieces = PiecewiseLinear(self._scale(x), self.pieces)
        self._train(self._inputs(x).float(), Attributes(targets, rows) if targets else None)
        return self

    def _train(self, x: Tensor, others: Attributes | None) -> None:
        settings = Settings(**{name: getattr(self, name) for name in Settings._fields})
        random = check_random_state(self.random_state)
        fitted: list[Fitted] = []
        for number in range(self.n_fits):
            title = f"fit {number + 1} of {self.n_fits}, " if self.n_fits > 1 else ""
            seed = int(random.randint(2**31 - 1))
            fitted.append(train(settings, x, self._main, others, seed, title))
        self.networks_ = [one.network for one in fitted]
        names = list(fitted[0].weights)
        weights = np.array([[one.weights[name] for name in names] for one in fitted])
        spread = weights.std(axis=0, ddof=1) if self.n_fits > 1 else np.full(len(names), np.nan)
        self.aux_weights_ = dict(zip(names, weights.mean(axis=0).tolist(), strict=True))
        self.aux_weights_std_ = dict(zip(names, spread.tolist(), strict=True))
        path = np.mean([one.path for one in fitted], axis=0)
        self.weights_path_ = path.reshape(len(path), len(names))

    def _scale(self, x: Array) -> Tensor:
        return torch.tensor(x if self.scaler_ is None else self.scaler_.transform(x))

    def _inputs(self, x: Array) -> Tensor:
        return self._pieces(self._scale(x))

    def _outputs(self, X: Any) -> Tensor:  # noqa: N803 -- scikit-learn's name
        """Outputs of the main head, [N, outputs] in float64: logits, or numbers in the units of ``y``."""
        check_is_fitted(self, "networks_")
        x = self._inputs(validate_data(self, X, reset=False, dtype=np.float64))
        with torch.no_grad():
            outputs = [torch.cat([network(part) for part in x.split(CHUNK)]) for network in self.networks_]
        return self._main.answers(torch.stack(outputs).mean(dim=0))["main"]

    def _score(self, measure: Callable[..., float], X: Any, y: Any, sample_weight: Any) -> float:  # noqa: N803
        """The measure over the rows that have a label."""
        missing = None if isinstance(self.missing, str) and self.missing == ASK else self.missing
        here, known = find_labels(clear_missing(check_column(y, "y"), "`y`", missing))
        if not len(known):
            raise ValueError(
                f"None of the {len(here)} rows has a main label to compare with. A search needs a division of the rows "
                "in which every part has some: cv=LabelledFold()."
            )
        weights = None if sample_weight is None else np.asarray(sample_weight)[here]
        return float(measure(known, self.predict(X)[here], sample_weight=weights))

    @abstractmethod
    def predict(self, X: Any) -> Array:  # noqa: N803
        """The prediction for each row, [N]."""

    @abstractmethod
    def _target(self, y: Array) -> Target:
        """The main target, from checked labels ``y`` [N]."""

    def _check_settings(self) -> None:
        for name in _COUNTS:
            value = getattr(self, name)
            if name == "every" and value is None:
                continue
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"`{name}` should be a whole number of at least 1. Got {value!r}.")
        numbers = isinstance(self.lr, Real) and isinstance(self.weight_decay, Real)
        if not numbers or not 0 < self.lr < float("inf") or not 0 <= self.weight_decay < float("inf"):
            raise ValueError(
                "`lr` should be a positive number and `weight_decay` a number of at least 0. "
                f"Got {self.lr!r} and {self.weight_decay!r}."
            )
        if not isinstance(self.dropout, Real) or not 0 <= self.dropout < 1:
            raise ValueError(f"`dropout` should be at least 0 and less than 1. Got {self.dropout!r}.")
        if not isinstance(self.pieces, Integral) or self.pieces < 0:
            raise ValueError(f"`pieces` should be a whole number of at least 0. Got {self.pieces!r}.")
        is_method = self.method is None or isinstance(self.method, str) or hasattr(self.method, "update")
        if isinstance(self.method, type) or not is_method:
            raise ValueError(
                "`method` should be a name such as 'arml', a method such as ARML(), or None for the recommended one. "
                f"Got {self.method!r}."
            )


class AuxiliaryClassifier(_Estimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for a main target with few labels, trained together with auxiliary targets.

    All targets share a trunk of multilayer perceptrons, whose outputs are averaged. The main target has its own linear
    head; the auxiliary targets share another. Their weights are learned during training. Each step draws rows with a
    main label and rows with auxiliary labels separately, so a few main labels are enough.

    Attributes:
        classes_: the classes of the main target, sorted.
        aux_weights_: the final weight of each auxiliary target, by name, the mean over fits; empty without auxiliary
            targets.
        aux_weights_std_: the standard deviation of these weights over fits; NaN with one fit.
        weights_path_: the weights at every ``every``-th step, or every tenth, [updates, K], the mean over fits.
        networks_: the trained networks of every fit, in float64.
        scaler_: standardises the features; ``None`` with ``standardize=False``.
        n_features_in_: F, the number of features.
        feature_names_in_: the column names, if ``X`` was a DataFrame whose column names are strings.
    """

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """Logits: [N], for the second class, with two classes; [N, classes] with more."""
        outputs: Array = self._outputs(X).numpy()
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Class probabilities in the order of ``classes_``, [N, classes]."""
        outputs = self._outputs(X)
        if outputs.shape[1] == 1:
            outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=1)
        probabilities: Array = outputs.softmax(dim=1).numpy()
        return probabilities

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The most probable class of each row, [N]."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        classes: Array = self.classes_[most_probable]
        return classes

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """The share of correct predictions among the rows that have a label."""
        return self._score(accuracy_score, X, y, sample_weight)

    def _target(self, y: Array) -> Target:
        here, known = find_labels(y)
        if not len(known):
            raise ValueError("No row has a main label: `y` should name the class of some rows. All are missing.")
        check_classification_targets(known)
        self.classes_ = np.unique(known)
        if len(self.classes_) < 2:
            raise ValueError(f"`y` should have at least two classes. Got one class only: {self.classes_[0]!r}.")
        return class_target(here, known)


class AuxiliaryRegressor(_Estimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor for a main target with few labels, trained together with auxiliary targets.

    Works like :class:`AuxiliaryClassifier`; the main loss is the squared error of the standardised ``y``.

    Attributes:
        aux_weights_: the final weight of each auxiliary target, by name, the mean over fits; empty without auxiliary
            targets.
        aux_weights_std_: the standard deviation of these weights over fits; NaN with one fit.
        weights_path_: the weights at every ``every``-th step, or every tenth, [updates, K], the mean over fits.
        networks_: the trained networks of every fit, in float64; their main output is in standardised units.
        scaler_: standardises the features; ``None`` with ``standardize=False``.
        n_features_in_: F, the number of features.
        feature_names_in_: the column names, if ``X`` was a DataFrame whose column names are strings.
    """

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The prediction for each row in the units of ``y``, [N]."""
        predictions: Array = self._outputs(X)[:, 0].numpy()
        return predictions

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """R^2, the explained share of the variance, over the rows that have a label."""
        return self._score(r2_score, X, y, sample_weight)

    def _target(self, y: Array) -> Target:
        y = check_array(y, **LABELS | {"dtype": np.float64}, input_name="y")
        known = y[~np.isnan(y)]
        if len(np.unique(known)) < 2:
            raise ValueError(f"`y` should have at least two different values. Got {known[:1].tolist() or 'none'}.")
        return Target(torch.tensor(y))
