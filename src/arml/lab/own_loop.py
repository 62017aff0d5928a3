"""A run of somebody's own loop, as its Recorder describes it."""

import math
import re
from dataclasses import dataclass
from typing import ClassVar

from arml.lab.catalogue import METHODS
from arml.lab.run import Line, MethodName, Run, Subject

MAIN_ONLY = "main_only"


@dataclass(frozen=True)
class OwnLoop(Run):
    """A training that the lab did not run. Fields that only the lab knows are empty."""

    setting: ClassVar[str] = "own"
    weighted: ClassVar[frozenset[str]] = frozenset({"joint"})

    method: MethodName = "arml"
    """How auxiliary losses were weighted, as the catalogue names it, or in the user's words."""
    dataset: str = "own"
    """What was learned from, as a title."""
    main: str = "main"
    """The main task."""
    labels: float | None = None
    """Labels of the main task; ``None``: all."""
    without: str = ""
    """The auxiliary task that was left out, if any: reports compare such runs with those that have it."""
    other_settings: tuple[str, ...] = ()
    """Whatever else the user named, such as ``lr 0.1``: each combination is a line of its own."""
    network: str = ""
    lr: float | None = None
    momentum: float = 0.0
    lr_drop_at: tuple[float, ...] = ()
    steps: int = 1

    def subject(self) -> Subject:
        """Data set, main task and labels."""
        return Subject(self.setting, self.dataset, self.main, math.inf if self.labels is None else self.labels)

    def line(self) -> Line:
        """The user's settings, and the method."""
        if self.method == MAIN_ONLY:
            return Line(MAIN_ONLY, "", ", ".join(self.other_settings))
        return Line(self._learner(), self.method, f"without {self.without}" if self.without else "")

    def reference(self) -> Line:
        """The same settings with equal weights."""
        return Line(self._learner(), "uniform")

    def protocol(self) -> str:
        """What the user's loop calls its result."""
        return "tested by the loop that was recorded"

    def _learner(self) -> str:
        return ", ".join(self.other_settings) or "joint"


def method_name(name: str) -> str:
    """The catalogue's name for a method or a class, if it has one; else ``name``.

    >>> method_name("GatedARML"), method_name("gated arml"), method_name("main only"), method_name("Mine")
    ('gated_arml', 'gated_arml', 'main_only', 'Mine')
    """
    known = {_plain(one): one for one in (*METHODS, MAIN_ONLY)}
    return known.get(_plain(name), name)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
