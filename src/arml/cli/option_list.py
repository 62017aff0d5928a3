"""The options of a command as plain data, read from the dataclass that holds them."""

import ast
import sys
import types
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import tyro


class Option(NamedTuple):
    """What a user has to know about an option."""

    field: str
    """The name of the field it fills."""
    kind: Any
    """The type of one value."""
    text: str
    """What it does."""
    default: Any
    """``MISSING`` if it has none."""
    many: bool
    """Whether it takes any number of values."""
    positional: bool
    optional: bool
    """Whether it takes ``none``."""

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return f"--{self.field.replace('_', '-')}"

    @property
    def takes_text(self) -> bool:
        """Whether a value may be any text, such as a name or a path."""
        return self.kind in (str, Path)

    @property
    def choices(self) -> tuple[str, ...]:
        """The values it takes, if they can be listed."""
        return tuple(map(str, get_args(self.kind))) if get_origin(self.kind) is Literal else ()


def list_options(holder: Any, default: Any = None) -> list[Option]:
    """The options of a dataclass; those of a dataclass inside ``default``, such as a run, stand in its place."""
    made: type = getattr(holder, "__origin__", holder) if default is None else type(default)
    hints, texts = get_type_hints(made, include_extras=True), _attribute_texts(made)
    found = []
    for part in fields(made):
        value = _default_of(part) if default is None else getattr(default, part.name)
        if is_dataclass(value):
            found += list_options(type(value), value)
        else:
            found.append(_option(part.name, hints[part.name], texts[part.name], value))
    return found


def _default_of(part: "Field[Any]") -> Any:
    return part.default_factory() if part.default_factory is not MISSING else part.default


def _option(name: str, hint: Any, text: str, default: Any) -> Option:
    marks: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        marks = tuple(rest)
    kind, many = _without_none(hint), False
    if get_origin(kind) is tuple:
        kind, many = get_args(kind)[0], True
    return Option(name, kind, text, default, many, tyro.conf.Positional in marks, type(None) in get_args(hint))


def _without_none(hint: Any) -> Any:
    """``int`` for ``int | None``; the other type for a number or a word, such as ``int | Literal["all"]``."""
    if get_origin(hint) not in (Union, types.UnionType):
        return hint
    return next(part for part in get_args(hint) if part is not type(None))


@cache
def _attribute_texts(made: type) -> dict[str, str]:
    """The string below each field, in the class or in those it inherits from."""
    texts: dict[str, str] = {}
    for one in reversed(made.__mro__):
        if is_dataclass(one):
            body = _class_bodies(one.__module__)[one.__name__]
            for statement, following in pairwise(body):
                if isinstance(statement, ast.AnnAssign) and isinstance(following, ast.Expr):
                    texts[ast.unparse(statement.target)] = " ".join(ast.literal_eval(following.value).split())
    return texts


@cache
def _class_bodies(module: str) -> dict[str, list[ast.stmt]]:
    """The statements of every class in a module."""
    # Not by inspect.getsource, which searches all modules that are loaded.
    tree = ast.parse(Path(str(sys.modules[module].__file__)).read_text())
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}
