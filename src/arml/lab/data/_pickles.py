"""Reads untrusted pickles without running any code: numbers, text, containers, and arrays of bytes."""

import math
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np

# What the unpickler may raise for bytes that are not a pickle, or only the beginning of one.
_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    pickle.PickleError,
    struct.error,
)


class _Stored:
    """Stores what the pickle says about an object and does nothing with it."""

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


class StoredDtype(_Stored):
    """Stands in for a numpy dtype: ``arguments`` are its code and two flags."""


class StoredArray(_Stored):
    """Stands in for a numpy array: ``state`` is (version, shape, dtype, Fortran order, bytes)."""

    def pixels(self) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        """The array of bytes; raises a ValueError that says what was found if it is anything else."""
        state = self.state
        if not isinstance(state, tuple) or len(state) != 5:
            raise ValueError("an incomplete array")
        _, shape, dtype, fortran, raw = state
        if not isinstance(dtype, StoredDtype) or dtype.arguments[:1] not in ((b"u1",), ("u1",)):
            raise ValueError(f"an array of another type ({getattr(dtype, 'arguments', dtype)})")
        if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
            raise ValueError("an array without a shape")
        if not isinstance(raw, bytes) or len(raw) != math.prod(shape):
            raise ValueError(f"an array of shape {list(shape)} that does not fit its bytes")
        return np.frombuffer(raw, dtype=np.uint8).reshape(shape, order="F" if fortran else "C")


# Everything a pickle may name. numpy's own classes are never handed out: a hostile dtype could point into memory.
_ALLOWED: dict[tuple[str, str], type[_Stored]] = {
    ("numpy.core.multiarray", "_reconstruct"): StoredArray,
    ("numpy._core.multiarray", "_reconstruct"): StoredArray,
    ("numpy", "ndarray"): StoredArray,
    ("numpy", "dtype"): StoredDtype,
}


class _Unpickler(pickle.Unpickler):
    def find_class(self, module_name: str, global_name: str, /) -> type[_Stored]:
        if (module_name, global_name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"the forbidden global {module_name}.{global_name}, which was not run")
        return _ALLOWED[module_name, global_name]


def read_pickle(path: Path) -> object:
    """The object in ``path``, arrays as :class:`StoredArray`, text of Python 2 as bytes.

    Raises a ValueError that says what was found if the file is not a pickle, is cut short, or names anything but
    arrays.
    """
    try:
        with path.open("rb") as file:
            found: object = _Unpickler(file, encoding="bytes").load()
    except pickle.UnpicklingError as error:
        raise ValueError(str(error)) from error
    except (OSError, *_UNREADABLE) as error:
        raise ValueError(f"a damaged or different file ({type(error).__name__}: {error})") from error
    return found
