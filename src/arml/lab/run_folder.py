"""What is in the folder of a run, and how it is known that the run is complete."""

import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

RECORD, DONE, FAILURE = "record.jsonl", "done", "failure.txt"
CHECKPOINTS = ("checkpoint.pt", "checkpoint.previous.pt")
"""The newest checkpoint, and the one before it."""
CHUNK = 2**20


class Prefix(NamedTuple):
    """The beginning of a record: enough to recognise it."""

    length: int
    """Number of bytes."""
    sha256: str


def measure_prefix(path: Path, length: int | None = None) -> Prefix:
    """The first ``length`` bytes of the record in ``path``, or fewer where it is shorter; ``None``: all of it."""
    digest, left = hashlib.sha256(), path.stat().st_size if length is None else length
    found = 0
    with path.open("rb") as file:
        while left > found and (chunk := file.read(min(CHUNK, left - found))):
            digest.update(chunk)
            found += len(chunk)
    return Prefix(found, digest.hexdigest())


def mark_done(folder: Path) -> None:
    """Marks the run in ``folder`` as complete, once its record is on disk. The mark names the record's size and hash.

    The checkpoint before the last one goes: nothing will fall back to it.
    """
    record = measure_prefix(folder / RECORD)
    write_whole(folder / DONE, json.dumps(record._asdict()).encode() + b"\n")
    for name in (*CHECKPOINTS[1:], FAILURE):
        (folder / name).unlink(missing_ok=True)


def is_done(folder: Path) -> bool:
    """Whether the run in ``folder`` is complete, with the very record that was marked so.

    Marks of version 0.1 are empty and name no record: they count if the record ends in a result.
    """
    try:
        text = (folder / DONE).read_bytes()
        if not text:
            return _ends_in_result(folder / RECORD)
        return measure_prefix(folder / RECORD) == Prefix(**json.loads(text))
    except (ValueError, TypeError, RecursionError, OSError):
        return False


def _ends_in_result(record: Path) -> bool:
    with record.open("rb") as file:
        file.seek(max(0, record.stat().st_size - CHUNK))
        *_, last, rest = [b"", *file.read().split(b"\n")]
    found = json.loads(last)
    return not rest and isinstance(found, dict) and "test_error" in found


def clear(folder: Path) -> None:
    """Makes the folder that of a run that has not begun: an old checkpoint must not meet a new record."""
    for name in (DONE, *CHECKPOINTS, RECORD, FAILURE):
        (folder / name).unlink(missing_ok=True)
    sync_folder(folder)


def write_whole(path: Path, *parts: bytes | memoryview, keep: Path | None = None) -> None:
    """Writes a file that is there completely or not at all, also after a crash; the old one goes to ``keep``."""
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.unlink(missing_ok=True)  # it may be a link to somewhere else
    with unfinished.open("xb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    if keep is not None and path.exists():
        path.replace(keep)
    unfinished.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes sure that the names in ``folder`` are on disk, where the system can do so."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
