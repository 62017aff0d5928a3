"""scikit-learn estimators for tables: a main target with few labels, and others beside it that may help.

>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(30, 5))
>>> y = np.where(np.arange(30) < 10, X[:, 0] > 0, np.nan)  # ten labels
>>> aux = np.stack([X[:, 0] + X[:, 1], X[:, 2] > 0], axis=1)  # a number and a yes or no for every row
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
from arml.lab.data.table import scaler_of, target_of
from arml.lab.data.targets import Target
from arml.lab.learners.joint_targets import JointTargets, MainTarget, no_augmentation
from arml.lab.models.mlp import mlp
from arml.lab.models.network import Network
from arml.lab.tasks.attributes import Attributes
from arml.methods import ARML, Method
from arml.reweighter import Reweighter

Array: TypeAlias = "np.ndarray[Any, Any]"

CHUNK = 10_000
"""Rows answered together, so that memory does not grow with their number."""

_ROWS = {"dtype": np.float64, "ensure_min_samples": 2}
_LABELS = {"dtype": None, "ensure_2d": False, "ensure_all_finite": "allow-nan"}


class _Estimator(ABC):
    """What classifier and regressor have in common: everything but the main target."""

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
        every: int = 10,
        aux_scale: float = 1.0,
        standardize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        device: str | None = None,
    ) -> None:
        """Nothing is checked before ``fit``, as everywhere in scikit-learn.

        Args:
            method: how auxiliary targets are weighted, such as ``GatedARML()``; ``None``: ``ARML()``.
            hidden: features of every layer.
            layers: of the perceptron.
            steps: of training.
            batch_size: rows of a step with a main label, and rows with auxiliary ones; all, if there are fewer.
            lr: the step size of Adam at the start; it falls to 0 in a straight line.
            weight_decay: w, for w / 2 times the sum of all squared parameters as a part of the loss.
            every: steps between two updates of the weights.
            aux_scale: multiplies every auxiliary loss.
            standardize: whether features get mean 0 and variance 1 over the training rows; constant ones are then 0.
            random_state: a whole number makes training repeatable.
            device: where to train, such as ``"cuda"``; ``None``: on the CPU, where the trained network is anyway.
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

        Labels may be missing in ``y`` and in ``aux``: NaN, or None among objects. A row teaches what it has labels for.

        Args:
            X: numbers without gaps.
            y: classes for the classifier, numbers for the regressor.
            aux: an array, whose columns are then named ``aux0``, ``aux1``, ...; or a DataFrame. A column of text, of
                two different numbers, or of up to 20 different whole numbers, has classes; any other has numbers.
                ``None``: the main target is learned alone.
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
            if reweighter is not None and step % self.every == 0:
                path.append(list(reweighter.weights.values()))
        # On the CPU, so that a pickle can be read anywhere; in double precision, so that the answer to a row does not
        # depend on the rows beside it.
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
        method = ARML() if self.method is None else self.method
        return Reweighter(method, tasks, network.trunk, every=self.every, aux_scale=self.aux_scale)

    def _batches(self, x: Tensor, others: Attributes | None, seed: int) -> AttributeBatches:
        """Rows with a main label and rows with any auxiliary label; without auxiliary targets nobody reads those."""
        beside = self._main if others is None else others
        pools = [(~targets.labels.isnan()).any(dim=1).nonzero().flatten() for targets in (self._main, beside)]
        main, aux = (Sampler(pool, min(self.batch_size, len(pool)), seed + i) for i, pool in enumerate(pools))
        y, aux_y = self._main.labels[:, 0], beside.labels
        return AttributeBatches(x.to(self.device), y, aux_y, main=main, aux=aux, preprocess=lambda rows: rows)

    def _inputs(self, x: Array) -> Tensor:
        return torch.tensor(x if self.scaler_ is None else self.scaler_.transform(x))

    def _outputs(self, X: Any) -> Tensor:  # noqa: N803 -- scikit-learn's name
        """What the main head says, [N, outputs] in float64: logits, or numbers in the units of ``y``."""
        check_is_fitted(self, "network_")
        x = self._inputs(validate_data(self, X, reset=False, dtype=np.float64))
        with torch.no_grad():
            outputs = torch.cat([self.network_(part) for part in x.split(CHUNK)])
        return self._main.answers(outputs)["main"]

    @abstractmethod
    def _target(self, y: Array) -> Target:
        """The main target."""

    def _check_settings(self) -> None:
        for name in ("hidden", "layers", "steps", "batch_size", "every"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or value < 1:
                raise ValueError(f"`{name}` should be a whole number of at least 1. Got {value!r}.")
        numbers = isinstance(self.lr, Real) and isinstance(self.weight_decay, Real)
        if not numbers or not 0 < self.lr < float("inf") or not 0 <= self.weight_decay < float("inf"):
            raise ValueError(
                "`lr` should be a positive number and `weight_decay` a number of at least 0. "
                f"Got {self.lr!r} and {self.weight_decay!r}."
            )
        if isinstance(self.method, type) or not (self.method is None or hasattr(self.method, "update")):
            raise ValueError(f"`method` should be a method such as ARML(), or None for it. Got {self.method!r}.")


class AuxiliaryClassifier(_Estimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Classes of the main target, learned with the help of auxiliary targets.

    All targets share a multilayer perceptron; the main target has a linear head of its own, the others have one
    together. Weights of the auxiliary targets are learned at the same time. Rows for the main target and rows for the
    others are drawn separately, so few main labels are enough.

    Attributes:
        classes_: of the main target, sorted.
        aux_weights_: the last weight of every auxiliary target by name; none without auxiliary targets.
        weights_path_: the weights every ``every`` steps, [updates, K].
        network_: the trained network, in float64.
        scaler_: what standardises the features; ``None`` without.
        n_features_in_: F.
        feature_names_in_: if ``X`` was a DataFrame with text as names.
    """

    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """Logits: [N] of the second class of two, [N, classes] of more."""
        outputs: Array = self._outputs(X).numpy()
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Probabilities of the classes in the order of ``classes_``, [N, classes]."""
        outputs = self._outputs(X)
        if outputs.shape[1] == 1:
            outputs = torch.cat([torch.zeros_like(outputs), outputs], dim=1)
        probabilities: Array = outputs.softmax(dim=1).numpy()
        return probabilities

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The most probable class of every row, [N]."""
        most_probable = self.predict_proba(X).argmax(axis=1)
        classes: Array = self.classes_[most_probable]
        return classes

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Share of right answers among the rows that have a label."""
        return _compared(accuracy_score, y, self.predict(X), sample_weight)

    def _target(self, y: Array) -> Target:
        here, known = _known(y)
        if not len(known):
            raise ValueError("No row has a main label: `y` should name the class of some rows. All are missing.")
        check_classification_targets(known)
        self.classes_ = np.unique(known)
        if len(self.classes_) < 2:
            raise ValueError(f"`y` should have at least two classes. Got one class only: {self.classes_[0]!r}.")
        return _of_classes(here, known)


class AuxiliaryRegressor(_Estimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A number as the main target, learned with the help of auxiliary targets.

    As :class:`AuxiliaryClassifier`, with the squared error of the standardised ``y`` as the main loss.

    Attributes:
        aux_weights_: the last weight of every auxiliary target by name; none without auxiliary targets.
        weights_path_: the weights every ``every`` steps, [updates, K].
        network_: the trained network, in float64; its main output is in standardised units.
        scaler_: what standardises the features; ``None`` without.
        n_features_in_: F.
        feature_names_in_: if ``X`` was a DataFrame with text as names.
    """

    def predict(self, X: Any) -> Array:  # noqa: N803
        """The answer to every row in the units of ``y``, [N]."""
        answers: Array = self._outputs(X)[:, 0].numpy()
        return answers

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """R^2, the explained share of the variance, over the rows that have a label."""
        return _compared(r2_score, y, self.predict(X), sample_weight)

    def _target(self, y: Array) -> Target:
        y = check_array(y, **_LABELS | {"dtype": np.float64}, input_name="y")
        known = y[~np.isnan(y)]
        if len(np.unique(known)) < 2:
            raise ValueError(f"`y` should have at least two different values. Got {known[:1].tolist() or 'none'}.")
        return Target(torch.tensor(y))


def _compared(score: Callable[..., float], y: Any, answers: Array, sample_weight: Any) -> float:
    """The score of the rows that have a label."""
    here, known = _known(_column(y, "y"))
    if not len(known):
        raise ValueError(
            f"None of the {len(here)} rows has a main label to compare with. A search needs a division of the rows "
            "in which every part has some, such as StratifiedKFold().split(X, np.isnan(y))."
        )
    weights = None if sample_weight is None else np.asarray(sample_weight)[here]
    return float(score(known, answers[here], sample_weight=weights))


def _targets(aux: Any, num_rows: int) -> Iterator[tuple[str, Target]]:
    """The columns of ``aux`` by name."""
    names, columns = _named(aux)
    if len(set(names)) < len(names):
        raise ValueError(f"The columns of `aux` should have different names. Got {', '.join(names)}.")
    if "main" in names:
        raise ValueError("A column of `aux` is called 'main', as the main target is. Rename the column.")
    for name, values in zip(names, columns, strict=True):
        column = _column(values, name)
        if len(column) != num_rows:
            raise ValueError(f"`aux` should have a row for each of the {num_rows} rows of X. Got {len(column)} rows.")
        yield name, target_of(name, _plain(column))


def _named(aux: Any) -> tuple[list[str], list[Any]]:
    if hasattr(aux, "columns"):
        return [str(name) for name in aux.columns], [aux[name] for name in aux.columns]
    table = np.asarray(aux)
    if table.ndim != 2 or not table.shape[1]:
        raise ValueError(
            f"`aux` should be an array or a DataFrame of shape [N, K], a column for each task. Got {table.shape}. "
            "A single task is a column, too: aux.reshape(-1, 1), or series.to_frame()."
        )
    return [f"aux{k}" for k in range(table.shape[1])], list(table.T)


def _plain(column: Array) -> Array:
    """Numbers as float64 with NaN, text as objects with None; true and false are text here."""
    here, known = _known(column)
    if known.dtype.kind in "iuf":
        return np.where(here, column, np.nan).astype(np.float64)
    if known.dtype.kind == "M":
        return known
    return np.array([str(value) if there else None for value, there in zip(column, here, strict=True)], dtype=object)


def _of_classes(here: Array, known: Array) -> Target:
    """Class numbers in the order of the sorted labels ``known``, of the rows that are ``here`` [N]."""
    classes, numbers = np.unique(known, return_inverse=True)
    values = np.full(len(here), np.nan)
    values[here] = numbers
    return Target(torch.tensor(values), tuple(map(str, classes)))


def _column(values: Any, name: str) -> Array:
    column: Array = check_array(values, **_LABELS, input_name=name)
    return column_or_1d(column)  # type: ignore[no-any-return]


def _known(column: Array) -> tuple[Array, Array]:
    """Where there is a label, bool [N], and these labels."""
    here = np.array([not _is_missing(value) for value in column.tolist()], dtype=bool)
    # Objects that were only needed to hold a None, or other columns beside this one, become numbers or text again.
    return here, np.array(column[here].tolist()) if column.dtype == object else column[here]


def _is_missing(value: object) -> bool:
    """None, NaN, or pandas' own mark, which compares with nothing and is told by its type without importing pandas."""
    return value is None or type(value).__name__ == "NAType" or value != value
