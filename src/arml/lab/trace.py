"""The record of a run: JSON lines, the run itself first. Reports read nothing else."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from arml.lab.environment import environment
from arml.lab.run import Run
from arml.lab.run_kinds import RUN_TYPES

Record = dict[str, Any]


class Trace:
    """Writes a record line by line. On resume, everything after the position of the last checkpoint is written again.

    Lines hold no times: a run that was killed and resumed leaves exactly the bytes of one that was not.
    """

    def __init__(
        self, path: Path, run: Run, position: int = 0, hardware: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Starts a new record, or continues at ``position`` of the one in ``path``; ``hardware``: what trains it."""
        self.run = run
        self._file = path.open("r+b" if position else "wb")
        if position:
            self._file.truncate(position)
            self._file.seek(position)
        else:
            self.write({"setting": run.setting, "run": run.described(), "environment": {**environment(), **hardware}})

    def write(self, record: Record) -> None:
        """Adds a line."""
        self._file.write(json.dumps(_plain(record), allow_nan=False).encode() + b"\n")
        self._file.flush()

    def position(self) -> int:
        """The position of the next line; everything before it is safely on disk."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _plain(value: Any) -> Any:
    """The same without NaN and infinity, which JSON does not have: they become null."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Recorded(NamedTuple):
    """A record, as read from its file."""

    run: Run
    records: list[Record]
    environment: dict[str, str]
    """Versions and processor of the machine that made it."""


def read(path: Path) -> Recorded:
    """The record in ``path``, without a last line that a crash cut off."""
    try:
        first, *records = [json.loads(line) for line in path.read_text().split("\n")[:-1]]
        run = RUN_TYPES[first["setting"]](**{key: _as_tuple(value) for key, value in first["run"].items()})
        return Recorded(run, records, first["environment"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is no record of a run ({type(error).__name__}: {error}). Its first line should be a JSON object "
            "with the keys setting, run and environment, as `arml train` writes it."
        ) from error


def _as_tuple(value: Any) -> Any:
    """JSON has lists where runs have tuples."""
    return tuple(value) if isinstance(value, list) else value


def result(records: list[Record]) -> Record | None:
    """The last line of a completed run, with the errors on the test examples; ``None`` if the run is not complete."""
    return next((record for record in reversed(records) if "test_error" in record), None)


def divergence(records: list[Record]) -> Record | None:
    """The line that says at which step the run diverged; ``None`` if it did not."""
    return next((record for record in reversed(records) if "diverged" in record), None)
