"""A method in a Python file of its own, which the catalogue does not have.

The file is code, and it is run: give only files that you would run yourself.
"""

import sys
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from arml.lab.catalogue import METHODS, MethodFacts
from arml.methods import Method

PARTS = ("init", "needs", "can_move", "directions", "update")
"""What a method has; deriving from ``arml.Method`` gives all but the first and the last."""
WHAT_TO_DO = (
    "It should hold a method named `method`, or a function `make()` that returns one: a frozen dataclass derived from "
    "`arml.Method`, with `init` and `update`."
)


def method_facts(file: str) -> MethodFacts:
    """What is known about the method in ``file``."""
    return MethodFacts(lambda trunk: load_method(file), f" + {Path(file).stem}")


@cache
def load_method(file: str) -> Method[Any]:
    """Runs ``file`` and returns its method.

    Raises:
        ValueError: There is no such file, it has the name of a known method, or it holds no method.
    """
    path = Path(file)
    if not path.is_file() or path.suffix != ".py":
        raise ValueError(f"{file!r} is no Python file. Give a file such as my_method.py. {WHAT_TO_DO}")
    if path.stem in METHODS:
        raise ValueError(f"{path.name} has the name of a known method, {path.stem}. Rename the file.")
    module = _run(path)
    if hasattr(module, "method"):
        found = module.method
    elif callable(getattr(module, "make", None)):
        found = module.make()
    else:
        raise ValueError(f"{file} has neither `method` nor `make`. {WHAT_TO_DO}")
    missing = [part for part in PARTS if not callable(getattr(found, part, None))]
    if missing or isinstance(found, type):
        lacks = "is a class, not an instance" if isinstance(found, type) else f"has no {', '.join(missing)}"
        raise ValueError(f"The method in {file}, {found!r}, {lacks}. {WHAT_TO_DO}")
    return found  # type: ignore[no-any-return]


def _run(path: Path) -> ModuleType:
    name = f"arml_method_file_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"Python cannot load {path}.")
    module = module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ValueError(f"{path} cannot be run: {type(error).__name__}: {error}. {WHAT_TO_DO}") from error
    return module
