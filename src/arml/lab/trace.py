"""The record of a run: JSON lines, the run itself first. Reports read nothing else."""

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from arml.lab.run import Run

Record = dict[str, Any]


class Trace:
    """Writes a record line by line. What stands after the position of the last checkpoint is written anew on resume.

    Lines hold no times: a run that was killed and resumed leaves the very bytes of one that was not.
    """

    def __init__(self, path: Path, run: Run, position: int = 0) -> None:
        """Starts a new record, or goes on at ``position`` of the one in ``path``."""
        self._file = path.open("r+b" if position else "wb")
        if position:
            self._file.truncate(position)
            self._file.seek(position)
        else:
            self.write({"run": asdict(run)})

    def write(self, record: Record) -> None:
        """Adds a line."""
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()

    def position(self) -> int:
        """Where the next line begins; everything before it is on disk for good."""
        os.fsync(self._file.fileno())
        return self._file.tell()

    def __enter__(self) -> "Trace":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class Recorded(NamedTuple):
    """A record that has been read."""

    run: Run
    records: list[Record]


def read(path: Path) -> Recorded:
    """The record in ``path``; a last line that was cut off by a crash is left out."""
    lines = path.read_text().split("\n")
    parsed = [json.loads(line) for line in lines[:-1]]
    if not parsed or "run" not in parsed[0]:
        raise ValueError(f"{path} is no record of a run: its first line should be a JSON object with the key 'run'.")
    return Recorded(Run.from_record(parsed[0]["run"]), parsed[1:])


def result(records: list[Record]) -> Record | None:
    """The last line of a completed run, with the errors on the test images; ``None`` for one that is not complete."""
    return next((record for record in reversed(records) if "test_error" in record), None)
