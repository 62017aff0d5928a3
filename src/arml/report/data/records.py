"""Paths -> records, and the files that cannot be used, with the reason."""

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from arml.lab.run import Run
from arml.lab.trace import Record, Recorded, read, result

RECORD, FAILURE = "record.jsonl", "failure.txt"
MOST_STEPS = 200
"""Recorded steps kept of a run, evenly spread: a curve needs no more, and a thousand runs fit into memory."""


class Collected(NamedTuple):
    """What the paths hold."""

    recorded: list[Recorded]
    failed: dict[Run, str]
    """Runs that ended without a result, with the last line of the failure."""
    skipped: list[tuple[Path, str]]
    """Unused files, with the reason."""


def collect(paths: Sequence[Path]) -> Collected:
    """Reads run folders, folders that hold them, and record files.

    Unreadable files are skipped and listed. A run found twice counts once; a complete record wins.

    Raises:
        ValueError: If a path does not exist.
    """
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise ValueError(
            f"Found neither a folder nor a file {', '.join(missing)}. "
            "Give folders of runs, as `arml train` and `arml compare` make them below --out, or record.jsonl files."
        )
    found = Collected([], {}, [])
    kept: dict[Run, tuple[Path, int]] = {}
    for path in files(paths):
        _try_add(path, found, kept)
    return found


def files(paths: Iterable[Path]) -> list[Path]:
    """The files given by or found in ``paths``, each once: records, and failures without a record."""
    found: dict[Path, Path] = {}
    for path in paths:
        inside = [path] if path.is_file() else sorted(p for name in (RECORD, FAILURE) for p in path.rglob(name))
        found |= {p.resolve(): p for p in inside if p.name != FAILURE or not p.with_name(RECORD).exists()}
    return list(found.values())


def _try_add(path: Path, found: Collected, kept: dict[Run, tuple[Path, int]]) -> None:
    try:
        _add(path, found, kept)
    except (ValueError, KeyError, TypeError, OSError) as error:
        found.skipped.append((path, _reason(error).removeprefix(f"{path} ")))


def _add(path: Path, found: Collected, kept: dict[Run, tuple[Path, int]]) -> None:
    if path.name == FAILURE:
        found.skipped.append((path, f"the run failed before its first record: {_last_line(path)}"))
    else:
        _add_record(path, _thin(_check(_read(path))), found, kept)


def _read(path: Path) -> Recorded:
    with path.open("rb") as file:
        if not file.readline().endswith(b"\n"):
            raise ValueError("it is empty, or its first line is cut off")
    return read(path)


def _add_record(path: Path, new: Recorded, found: Collected, kept: dict[Run, tuple[Path, int]]) -> None:
    """Keeps one record for each run."""
    if new.run in kept:
        first, place = kept[new.run]
        if result(found.recorded[place].records) is not None or result(new.records) is None:
            found.skipped.append((path, f"the same run is in {first}"))
            return
        found.skipped.append((first, f"the same run, complete, is in {path}"))
        found.recorded[place] = new
    else:
        place = len(found.recorded)
        found.recorded.append(new)
    kept[new.run] = (path, place)
    found.failed.pop(new.run, None)
    failure = path.with_name(FAILURE)
    if result(new.records) is None and failure.exists():
        found.failed[new.run] = _last_line(failure)


def _check(recorded: Recorded) -> Recorded:
    """Returns ``recorded``; refuses files with a valid first line and other lines that are no records."""
    for number, record in enumerate(recorded.records, start=2):
        if not isinstance(record, dict) or not isinstance(record.get("step"), int):
            raise ValueError(f"line {number} is no record of a step: {json.dumps(record)[:60]}")
    outcome = result(recorded.records)
    if outcome is not None and not _is_result(outcome):
        raise ValueError(f"its result has numbers that are missing or no numbers: {json.dumps(outcome)[:120]}")
    recorded.run.subject(), recorded.run.line()  # runs of another version may lack fields that these need
    return recorded


def _is_result(outcome: Record) -> bool:
    errors = [outcome.get("test_error"), outcome.get("validation_error", 0.0)]  # there may be no validation labels
    weights = outcome.get("weights")
    return isinstance(weights, dict) and all(_is_number(value) for value in [*errors, *weights.values()])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _thin(recorded: Recorded) -> Recorded:
    """At most ``MOST_STEPS`` recorded steps, with the last one, and the result; only the keys that reports read."""
    steps = [record for record in recorded.records if "weights" in record and "test_error" not in record]
    stride = math.ceil(len(steps) / MOST_STEPS)
    kept: list[Record] = [
        {key: record[key] for key in ("step", "weights", "agreement") if key in record}
        for record in (steps[::-1][::stride][::-1] if stride else [])
    ]
    outcome = result(recorded.records)
    return recorded._replace(records=[*kept, *([] if outcome is None else [outcome])])


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no reason is given"


def _reason(error: Exception) -> str:
    """The reason in one line."""
    return f"{'' if isinstance(error, ValueError) else type(error).__name__ + ': '}{' '.join(str(error).split())}"[:300]
