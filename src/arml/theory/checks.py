"""What may be given: finite numbers of the right shape, matrices that make sense, weights of the simplex, counts."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def check_vector(name: str, given: ArrayLike) -> Array:
    """``given`` as an array [d] of finite numbers."""
    vector = _to_numbers(given)
    if vector is None or vector.ndim != 1 or not len(vector) or not np.isfinite(vector).all():
        raise ValueError(f"`{name}` should be a list of finite numbers. Got {given!r}.")
    return vector


def check_matrix(name: str, given: ArrayLike) -> Array:
    """``given`` as a symmetric array [d, d] of finite numbers."""
    matrix = _to_numbers(given)
    if matrix is None:
        raise ValueError(f"`{name}` should be a square matrix of finite numbers. Got {given!r}.")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise ValueError(f"`{name}` should be a square matrix of finite numbers. Got shape {matrix.shape}: {given!r}.")
    if not np.allclose(matrix, matrix.T, rtol=1e-8, atol=1e-12 * max(1.0, float(np.abs(matrix).max()))):
        raise ValueError(f"`{name}` should be symmetric. Got {matrix.tolist()}.")
    return np.asarray((matrix + matrix.T) / 2)


def check_definite(name: str, matrix: Array) -> None:
    """Raises unless every eigenvalue is positive."""
    lowest = float(np.linalg.eigvalsh(matrix)[0])
    if lowest <= 0:
        raise ValueError(
            f"`{name}` should be positive definite: every eigenvalue above 0. Its smallest is {lowest:.4g}. "
            f"Got {matrix.tolist()}."
        )


def check_same_size(name: str, one: Array, other_name: str, other: Array) -> None:
    """Raises unless both have the same number of parameters d."""
    if len(one) != len(other):
        raise ValueError(
            f"`{name}` and `{other_name}` should have the same number of parameters. Got {len(one)} and {len(other)}."
        )


def check_points(theta: ArrayLike, size: int) -> Array:
    """``theta`` as an array [..., size]. A point with fewer numbers would be stretched in silence."""
    points = np.asarray(theta, dtype=float)
    if points.shape[-1:] != (size,):
        numbers = "number" if size == 1 else "numbers"
        raise ValueError(f"`theta` should have {size} {numbers} in its last dimension. Got shape {points.shape}.")
    return points


def check_weights(alpha: ArrayLike, num_tasks: int, total: float | None = None) -> Array:
    """``alpha`` as an array [K]; raises unless no weight is negative and all sum to ``total``.

    Args:
        alpha: the weights of K tasks.
        num_tasks: K.
        total: what they sum to; ``None``: K. ``math.nan`` allows any sum.
    """
    weights = check_many_weights(alpha, num_tasks, total)
    if weights.ndim != 1:
        raise ValueError(f"`alpha` should have one weight per auxiliary task, {num_tasks}. Got shape {weights.shape}.")
    return weights


def check_many_weights(alpha: ArrayLike, num_tasks: int, total: float | None = None) -> Array:
    """The same for any number of weights, [..., K]."""
    weights = _to_numbers(alpha)
    if weights is None:
        raise ValueError(f"`alpha` should be a list of finite numbers. Got {alpha!r}.")
    if weights.shape[-1:] != (num_tasks,):
        raise ValueError(f"`alpha` should have one weight per auxiliary task, {num_tasks}. Got shape {weights.shape}.")
    total = num_tasks if total is None else total
    rows = weights.reshape(-1, num_tasks)
    off = np.abs(rows.sum(-1) - total) > 1e-6 * max(1.0, total)
    bad = rows[~np.isfinite(rows).all(-1) | (rows < 0).any(-1) | off]
    if len(bad):
        raise ValueError(
            f"`alpha` should have no negative weight and sum to {total:g}. Got {show_weights(bad[0])}, "
            f"with the sum {bad[0].sum():.6g}. Project it first: arml.theory.project(alpha, total)."
        )
    return weights


def check_total(total: float) -> None:
    """Raises unless weights that are not negative can sum to ``total``."""
    if not 0 <= total < np.inf:
        raise ValueError(f"`total` should be a finite number of at least 0. Got {total!r}.")


def check_count(name: str, given: float) -> None:
    """Raises unless ``given`` is 1, 2, 3 ..."""
    if not isinstance(given, int | float | np.integer) or not 1 <= given < np.inf or given != int(given):
        raise ValueError(f"`{name}` should be a whole number of at least 1. Got {given!r}.")


def show_weights(alpha: ArrayLike) -> list[float]:
    """Weights with six digits, for sentences."""
    return [float(f"{weight:.6g}") for weight in np.ravel(np.asarray(alpha, dtype=float))]


def _to_numbers(given: ArrayLike) -> Array | None:
    """An array of floats; ``None`` if ``given`` holds text, complex numbers, or rows of several lengths."""
    try:
        return np.array(given, dtype=float)
    except (TypeError, ValueError):
        return None
