"""scikit-learn estimators for tables: a main target with few labels, and auxiliary targets that may help.

>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(30, 5))
>>> y = np.where(np.arange(30) < 10, X[:, 0] > 0, np.nan)  # ten labels
>>> aux = np.stack([X[:, 0] + X[:, 1], X[:, 2] > 0], axis=1)  # a number and a yes/no for every row
>>> model = AuxiliaryClassifier(steps=10, random_state=0).fit(X, y, aux=aux)
>>> model.classes_, sorted(model.aux_weights_), model.predict_proba(X).shape
(array([0., 1.]), ['aux0', 'aux1'], (30, 2))
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
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

from arml.lab.data.batches import AttributeBatches, Sampler
from arml.lab.data.table import target_of
from arml.lab.data.table_features import scaler_of
from arml.lab.data.targets import Target
from arml.lab.learners.joint_targets import JointTargets, MainTarget, no_augmentation
from arml.lab.models.mlp import mlp
from arml.lab.models.network import Network
from arml.lab.tasks.attributes import Attributes
from arml.methods import Method
from arml.reweighter import Reweighter

Array: TypeAlias = "np.ndarray[Any, Any]"

CHUNK = 10_000
"""Rows predicted at once, so that memory does not grow with their number."""

_ROWS = {"dtype": np.float64, "ensure_min_samples": 2}
_LABELS = {"dtype": None, "ensure_2d": False, "ensure_all_finite": "allow-nan"}


class _Estimator(ABC):
    """The common part of classifier and regressor: everything but the main target."""

    def __init__(
        self,
        method: Method[Any] | None = None,
        *,
        hidden: int = 64,
        layers: int = 2,
        steps: int = 500,
        batch_size: int = 64,
        lr: float = 0.003,
        weight_decay: float = 0.01,
        every: int | None = None,
        aux_scale: float = 1.0,
        standardize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        device: str | None = None,
    ) -> None:
        """Stores the settings. As everywhere in scikit-learn, ``fit`` checks them.

        Args:
            method: how auxiliary targets are weighted, such as ``ARML()``; ``None``: the recommended one.
            hidden: units per layer.
            layers: layers of the perceptron.
            steps: training steps.
            batch_size: rows per step with a main label, and rows per step with auxiliary labels; fewer rows than that
                are all used.
            lr: step size of Adam at the start; it falls linearly to 0.
            weight_decay: w; the loss includes w / 2 times the sum of all squared parameters.
            every: steps between two updates of the weights; ``None``: the schedule of the method.
            aux_scale: multiplies every auxiliary loss.
            standardize: scale features to mean 0 and variance 1 over the training rows; constant features become 0.
            random_state: an integer makes training repeatable.
            device: where to train, such as ``"cuda"``; ``None``: the CPU, where the trained network ends up anyway.
        """
        self.method = method
        self.hidden = hidden
        self.layers = layers
        self.steps = steps
        self.batch_size = batch_size
        self.lr = lr
        self.weight_decay = weight_decay
        self.every = every
        self.aux_scale = aux_scale
        self.standardize = standardize
        self.random_state = random_state
        self.device = device

    def fit(self, X: Any, y: Any, aux: Any = None) -> Any:  # noqa: N803 -- scikit-learn's name
        """Learns from rows ``X`` [N, F], the main target ``y`` [N] and the auxiliary targets ``aux`` [N, K].

        Labels may be missing in ``y`` and ``aux``: as NaN, or as None in an array of objects. Each row is used for the
        targets it has labels for.

        Args:
            X: numbers, none missing.
            y: classes for the classifier, numbers for the regressor.
            aux: a DataFrame, or an array, whose columns are then named ``aux0``, ``aux1``, ... Columns of text, of two
                different numbers, or of up to 20 different whole numbers hold classes; all others hold numbers.
                ``None``: learn the main target alone.
        """
        self._check_settings()
        x, y = validate_data(self, X, y, validate_separately=(_ROWS, _LABELS))
        check_consistent_length(x, y)
        rows = torch.arange(len(x))
        self._main = Attributes({"main": self._target(column_or_1d(y, warn=True))}, rows)
        others = None if aux is None else Attributes(dict(_targets(aux, len(x))), rows)
        self.scaler_ = scaler_of(x) if self.standardize else None
        self._train(self._inputs(x).float(), others)
        return self

    def _train(self, x: Tensor, others: Attributes | None) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        learner = (
            MainTarget(self._main, no_augmentation)
            if others is None
            else JointTargets(self._main, others, no_augmentation)
        )
        network = self._network(x.shape[1], {"class": self._main.num_outputs, **learner.heads}, seed)
        reweighter = self._reweighter(network, learner.tasks)
        optimizer = torch.optim.Adam(network.parameters(), lr=self.lr, weight_decay=self.weight_decay)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0, total_iters=self.steps)
        batches, generator, path = self._batches(x, others, seed), torch.Generator(), []
        for step in range(self.steps):
            main, aux = learner.losses(network, batches.next(), step, generator)
            loss = main if reweighter is None else reweighter(main, aux)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            if reweighter is not None and step % (self.every or 10) == 0:
                path.append(list(reweighter.weights.values()))
        # On the CPU, so that a pickle loads anywhere; in double precision, so that the prediction for a row does not
        # depend on the other rows of its batch.
        self.network_ = network.cpu().double().eval()
        self.aux_weights_ = {} if reweighter is None else reweighter.weights
        self.weights_path_ = np.array(path).reshape(len(path), len(self.aux_weights_))

    def _network(self, num_inputs: int, heads: dict[str, int], seed: int) -> Network:
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            network = Network(mlp(num_inputs, self.hidden, num_layers=self.layers), self.hidden, heads)
        return network.to(self.device)

    def _reweighter(self, network: Network, tasks: tuple[str, ...]) -> Reweighter | None:
        if not tasks:
            return None
        return Reweighter(self.method, tasks, network.trunk, every=self.every, aux_scale=self.aux_scale)

    def _batches(self, x: Tensor, others: Attributes | None, seed: int) -> AttributeBatches:
        """Rows with a main label and rows with any auxiliary label; without auxiliary targets the latter are unused."""
        second = self._main if others is None else others
        pools = [(~targets.labels.isnan()).any(dim=1).nonzero().flatten() for targets in (self._main, second)]
        main, aux = (Sampler(pool, min(self.batch_size, len(pool)), seed + i) for i, pool in enumerate(pools))
        y, aux_y = self._main.labels[:, 0], second.labels
        return AttributeBatches(x.to(self.device), y, aux_y, main=main, aux=aux, preprocess=lambda rows: rows)

    def _inputs(self, x: Array) -> Tensor:
        return torch.tensor(x if self.scaler_ is None else self.scaler_.transform(x))

    def _outputs(self, X: Any) -> Tensor:  # noqa: N803 -- scikit-learn's name
        """Outputs of the main head, [N, outputs] in float64: logits, or numbers in the units of ``y``."""
        check_is_fitted(self, "network_")
        x = self._inputs(validate_data(self, X, reset=False, dtype=np.float64))
        with torch.no_grad():
            outputs = torch.cat([self.network_(part) for part in x.split(CHUNK)])
        return self._main.answers(outputs)["main"]

    @abstractmethod
    def _target(self, y: Array) -> Target:
        """The main target, from checked labels ``y`` [N]."""

    def _check_settings(self) -> None:
        for name in ("hidden", "layers", "steps", "batch_size", "every"):
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
        if isinstance(self.method, type) or not (self.method is None or hasattr(self.method, "update")):
            raise ValueError(
                f"`method` should be a method such as ARML(), or None for the recommended one. Got {self.method!r}."
            )


class AuxiliaryClassifier(_Estimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for a main target with few labels, trained together with auxiliary targets.

    All targets share a multilayer perceptron. The main target has its own linear head; the auxiliary targets share
    another. Their weights are learned during training. Each step draws rows with a main label and rows with auxiliary
    labels separately, so a few main labels are enough.

    Attributes:
        classes_: the classes of the main target, sorted.
        aux_weights_: the final weight of each auxiliary target, by name; empty without auxiliary targets.
        weights_path_: the weights at every ``every``-th step, or every tenth, [updates, K].
        network_: the trained network, in float64.
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
        return _score_labelled(accuracy_score, y, self.predict(X), sample_weight)

    def _target(self, y: Array) -> Target:
        here, known = _find_labels(y)
        if not len(known):
            raise ValueError("No row has a main label: `y` should name the class of some rows. All are missing.")
        check_classification_targets(known)
        self.classes_ = np.unique(known)
        if len(self.classes_) < 2:
            raise ValueError(f"`y` should have at least two classes. Got one class only: {self.classes_[0]!r}.")
        return _class_target(here, known)


class AuxiliaryRegressor(_Estimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor for a main target with few labels, trained together with auxiliary targets.

    Works like :class:`AuxiliaryClassifier`; the main loss is the squared error of the standardised ``y``.

    Attributes:
        aux_weights_: the final weight of each auxiliary target, by name; empty without auxiliary targets.
        weights_path_: the weights at every ``every``-th step, or every tenth, [updates, K].
        network_: the trained network, in float64; its main output is in standardised units.
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
        return _score_labelled(r2_score, y, self.predict(X), sample_weight)

    def _target(self, y: Array) -> Target:
        y = check_array(y, **_LABELS | {"dtype": np.float64}, input_name="y")
        known = y[~np.isnan(y)]
        if len(np.unique(known)) < 2:
            raise ValueError(f"`y` should have at least two different values. Got {known[:1].tolist() or 'none'}.")
        return Target(torch.tensor(y))


def _score_labelled(score: Callable[..., float], y: Any, predictions: Array, sample_weight: Any) -> float:
    """The score over the rows that have a label."""
    here, known = _find_labels(_check_column(y, "y"))
    if not len(known):
        raise ValueError(
            f"None of the {len(here)} rows has a main label to compare with. A search needs a division of the rows "
            "in which every part has some, such as StratifiedKFold().split(X, np.isnan(y))."
        )
    weights = None if sample_weight is None else np.asarray(sample_weight)[here]
    return float(score(known, predictions[here], sample_weight=weights))


def _targets(aux: Any, num_rows: int) -> Iterator[tuple[str, Target]]:
    """The columns of ``aux`` as targets, by name."""
    names, columns = _split_columns(aux)
    if len(set(names)) < len(names):
        raise ValueError(f"The columns of `aux` should have different names. Got {', '.join(names)}.")
    if "main" in names:
        raise ValueError("A column of `aux` is called 'main', as the main target is. Rename the column.")
    for name, values in zip(names, columns, strict=True):
        column = _check_column(values, name)
        if len(column) != num_rows:
            raise ValueError(f"`aux` should have a row for each of the {num_rows} rows of X. Got {len(column)} rows.")
        yield name, target_of(name, _simplify(column))


def _split_columns(aux: Any) -> tuple[list[str], list[Any]]:
    if hasattr(aux, "columns"):
        return [str(name) for name in aux.columns], [aux[name] for name in aux.columns]
    table = np.asarray(aux)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(
            f"`aux` should be an array or a DataFrame of shape [N, K], a column for each task. Got {table.shape}. "
            "A single task is a column, too: aux.reshape(-1, 1), or series.to_frame()."
        )
    return [f"aux{k}" for k in range(table.shape[1])], list(table.T)


def _simplify(column: Array) -> Array:
    """Numbers as float64 with NaN, text as objects with None; booleans become text."""
    here, known = _find_labels(column)
    if known.dtype.kind in "iuf":
        return np.where(here, column, np.nan).astype(np.float64)
    if known.dtype.kind == "M":
        return known
    return np.array([str(value) if there else None for value, there in zip(column, here, strict=True)], dtype=object)


def _class_target(here: Array, known: Array) -> Target:
    """A target of class numbers: ``known`` are the labels of the rows that are ``here`` [N], classes are sorted."""
    classes, numbers = np.unique(known, return_inverse=True)
    values = np.full(len(here), np.nan)
    values[here] = numbers
    return Target(torch.tensor(values), tuple(map(str, classes)))


def _check_column(values: Any, name: str) -> Array:
    column: Array = check_array(values, **_LABELS, input_name=name)
    return column_or_1d(column)  # type: ignore[no-any-return]


def _find_labels(column: Array) -> tuple[Array, Array]:
    """The mask of the rows that have a label, [N], and the labels of these rows."""
    here = np.array([not _is_missing(value) for value in column.tolist()], dtype=bool)
    # A column may be of objects only to hold a None, or because of other columns: its labels become numbers or text.
    return here, np.array(column[here].tolist()) if column.dtype == object else column[here]


def _is_missing(value: object) -> bool:
    """Whether ``value`` is None, NaN or pandas' NA, which is recognised by its type without importing pandas."""
    return value is None or type(value).__name__ == "NAType" or value != value
