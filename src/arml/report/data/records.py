"""Paths -> records, and the files that cannot be used, with the reason."""

import math
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from arml.lab.run import Run
from arml.lab.trace import Record, Recorded, divergence, read, result
from arml.report.data.schema import check_record

RECORD, FAILURE = "record.jsonl", "failure.txt"
LARGEST_RECORD, LARGEST_LINE, LARGEST_TAIL = 2**28, 2**24, 2**14
"""Bytes of a record, of a line, and at the end of a failure that are read. Larger records are skipped."""
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
        found |= {Path(os.path.realpath(p)): p for p in inside if p.name != FAILURE or not p.with_name(RECORD).exists()}
    return list(found.values())


def _try_add(path: Path, found: Collected, kept: dict[Run, tuple[Path, int]]) -> None:
    try:
        _add(path, found, kept)
    except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, AttributeError, OSError) as error:
        found.skipped.append((path, _reason(error).removeprefix(f"{path} ")))


def _add(path: Path, found: Collected, kept: dict[Run, tuple[Path, int]]) -> None:
    if path.name == FAILURE:
        found.skipped.append((path, f"the run failed before its first record: {_last_line(path)}"))
    else:
        _add_record(path, _thin(check_record(_read(path))), found, kept)


def _read(path: Path) -> Recorded:
    size = _check_regular(path)
    if size > LARGEST_RECORD:
        raise ValueError(f"it has {size} bytes; records of at most {LARGEST_RECORD} are read")
    with path.open("rb") as file:
        first = file.readline(LARGEST_LINE)
        if not first.endswith(b"\n"):
            raise ValueError("it is empty, or its first line is cut off")
        while line := file.readline(LARGEST_LINE):
            if len(line) == LARGEST_LINE:
                raise ValueError(f"it has a line of more than {LARGEST_LINE} bytes")
    return read(path)


def _check_regular(path: Path) -> int:
    """The size of a regular file; reading anything else, such as a pipe or a device, might never end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is no regular file")
    return found.st_size


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
    failure, ended = path.with_name(FAILURE), divergence(new.records)
    if ended is not None:
        found.failed[new.run] = f"diverged at step {ended['step']}: {ended['diverged']['reason']}"
    elif result(new.records) is None and failure.exists():
        found.failed[new.run] = _last_line(failure)


def _thin(recorded: Recorded) -> Recorded:
    """At most ``MOST_STEPS`` recorded steps, with the last one, and the result; only the keys that reports read."""
    steps = [record for record in recorded.records if "weights" in record and "test_error" not in record]
    stride = math.ceil(len(steps) / MOST_STEPS)
    kept: list[Record] = [
        {key: record[key] for key in ("step", "weights", "agreement", "cosine") if key in record}
        for record in (steps[::-1][::stride][::-1] if stride else [])
    ]
    outcome = result(recorded.records)
    ended = divergence(recorded.records)
    return recorded._replace(records=[*kept, *(line for line in (outcome, ended) if line is not None)])


def _last_line(path: Path) -> str:
    size = _check_regular(path)
    with path.open("rb") as file:
        file.seek(max(0, size - LARGEST_TAIL), os.SEEK_SET)
        lines = file.read(LARGEST_TAIL).decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "no reason is given"


def _reason(error: Exception) -> str:
    """The reason in one line."""
    return f"{'' if isinstance(error, ValueError) else type(error).__name__ + ': '}{' '.join(str(error).split())}"[:300]
