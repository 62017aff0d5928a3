"""The file that a search leaves and a comparison reads: settings for each line of a table."""

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from arml.lab.run import Run

FORMAT = 1
Value = float | str
SEARCHED: dict[str, Callable[[Any], Value]] = {
    "network": str,
    "steps": int,
    "lr": float,
    "weight_lr": float,
    "aux_scale": float,
}
"""Fields of a run that may be searched, and what their values are."""
R = TypeVar("R", bound=Run)


@dataclass(frozen=True)
class TunedLine:
    """What was chosen for one line."""

    learner: str
    method: str
    values: dict[str, Value]
    """Values of ``SEARCHED`` fields; fields that are missing keep the value of the preset."""
    score: float
    """Mean over seeds of what networks are chosen by on validation examples. Less is better."""
    trials: int


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    setting: str
    dataset: str
    seeds: int
    lines: tuple[TunedLine, ...]


def write_tuned(path: Path, tuned: Tuned, command: str, tried: Sequence[str] = ()) -> None:
    """Writes the file, which is TOML. ``command`` says how to make it again, ``tried`` what else could be chosen."""
    about = {"format": FORMAT, "setting": tuned.setting, "dataset": tuned.dataset, "seeds": tuned.seeds}
    remarks = [f"Chosen on validation examples by: {command}", *tried]
    blocks = ["".join(f"# {remark}\n" for remark in remarks) + _pairs(about)]
    for line in tuned.lines:
        named = {"learner": line.learner, "method": line.method, **line.values}
        blocks.append("[[lines]]\n" + _pairs({**named, "score": line.score, "trials": line.trials}))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(blocks))


def _pairs(values: dict[str, Any]) -> str:
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items())


def read_tuned(path: Path) -> Tuned:
    """The settings in a file of ``arml tune``."""
    try:
        found = tomllib.loads(path.read_text())
        if found["format"] != FORMAT:
            raise ValueError(f"its format is {found['format']}, this version reads {FORMAT}")
        lines = tuple(_read_line(line) for line in found["lines"])
        return Tuned(str(found["setting"]), str(found["dataset"]), int(found["seeds"]), lines)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} is no file of settings ({type(error).__name__}: {error}). `arml tune` writes such files."
        ) from error


def _read_line(line: dict[str, Any]) -> TunedLine:
    unknown = set(line) - {"learner", "method", "score", "trials", *SEARCHED}
    if unknown:
        raise ValueError(f"unknown settings {', '.join(sorted(unknown))}; known: {', '.join(SEARCHED)}")
    values = {name: kind(line[name]) for name, kind in SEARCHED.items() if name in line}
    return TunedLine(
        str(line["learner"]), str(line["method"]), values, float(line.get("score", 0)), int(line.get("trials", 0))
    )


def apply_tuned(runs: Sequence[R], tuned: Tuned) -> list[R]:
    """``runs`` with the chosen settings, line by line. Lines that the search did not have stay as they are."""
    foreign = {run.setting for run in runs} - {tuned.setting}
    if foreign:
        raise ValueError(f"The settings were chosen for {tuned.setting}; these runs are of {', '.join(foreign)}.")
    values = {(line.learner, line.method): line.values for line in tuned.lines}
    return [change(run, values.get(line_key(run), {})) for run in runs]


def change(run: R, values: Mapping[str, Value]) -> R:
    """``run`` with other values of some fields."""
    fields: dict[str, Any] = dict(values)
    return replace(run, **fields)


def line_key(run: Run) -> tuple[str, str]:
    """What settings are chosen for: a learner with a method."""
    line = run.line()
    return line.learner, line.method
