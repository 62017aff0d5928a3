"""Reads untrusted pickles without running any code: numbers, text, containers, and arrays of bytes."""

import io
import math
import pickle
import pickletools
import reprlib
import struct
from pathlib import Path
from typing import Any

import numpy as np

LARGEST = 2**30
"""Bytes of a file. The originals have 31 million."""
MOST_OBJECTS = 1_000_000
"""Instructions of a pickle, each of which may make an object. The originals have 70 000."""

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
            raise ValueError(f"an array of another type ({reprlib.repr(getattr(dtype, 'arguments', dtype))})")
        if not isinstance(shape, tuple) or not all(isinstance(n, int) and 0 <= n <= LARGEST for n in shape[:9]):
            raise ValueError("an array without a shape")
        if len(shape) > 8 or not isinstance(raw, bytes) or len(raw) != math.prod(shape):
            raise ValueError(f"an array of shape {list(shape[:8])} that does not fit its bytes")
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
    arrays. Its instructions are read before any is followed: memory stays below a small multiple of the file's size.
    """
    try:
        size = path.stat().st_size
        if size > LARGEST:
            raise ValueError(f"{size} bytes, more than the {LARGEST} that are read")
        content = path.read_bytes()
        _check_instructions(content)
        found: object = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    except pickle.UnpicklingError as error:
        raise ValueError(str(error)) from error
    except (OSError, *_UNREADABLE) as error:
        raise ValueError(f"a damaged or different file ({type(error).__name__}: {error})") from error
    return found


_PUTS = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))


def _check_instructions(content: bytes) -> None:
    """Refuses instructions that ask for memory out of proportion to the file.

    A place in the unpickler's table costs the memory of all places before it, and a frame that of its length.
    """
    for number, (instruction, argument, place) in enumerate(pickletools.genops(content)):
        asked = argument if isinstance(argument, int) else 0
        if number > MOST_OBJECTS:
            raise ValueError(f"more than {MOST_OBJECTS} instructions")
        if instruction.name in _PUTS and asked > MOST_OBJECTS:
            raise ValueError(f"an instruction at byte {place} that asks for memory for {asked} objects")
        if instruction.name == "FRAME" and asked > len(content):
            raise ValueError(f"an instruction at byte {place} that asks for {asked} bytes")
