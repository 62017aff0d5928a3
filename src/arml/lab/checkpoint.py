"""Checkpoints: files that know which run and which record they belong to, and notice when they are damaged.

A file holds three lines and a body. The lines: what the file is and its version; the SHA-256 of all that follows; a
JSON object that names the run and the beginning of its record. The body is what ``torch.save`` writes.
"""

import hashlib
import io
import json
import re
import warnings
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import torch

from arml.lab.run_folder import CHECKPOINTS, RECORD, Prefix, measure_prefix, write_whole

KIND, VERSION = b"arml-checkpoint", 2
"""Files of version 1 were bare ``torch.save`` files without any of this."""
LONGEST_LINE = 200


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the text says why and what to do."""


class Checkpoint(NamedTuple):
    """What a file holds."""

    run: str
    """Name of the run, which is unique."""
    record: Prefix
    """The beginning of the record, up to the checkpoint."""
    state: dict[str, Any]
    """Everything that later steps depend on."""


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Writes the newest checkpoint and keeps the one before. A crash leaves at least one, complete."""
    body = io.BytesIO()  # not straight to disk: a full disk is then an OSError that says so
    torch.save(checkpoint.state, body)
    about = json.dumps({"run": checkpoint.run, "record": checkpoint.record._asdict()}).encode() + b"\n"
    digest = hashlib.sha256(about)
    digest.update(body.getbuffer())
    newest, previous = (folder / name for name in CHECKPOINTS)
    head = b"%s %d\n%s\n" % (KIND, VERSION, digest.hexdigest().encode())
    write_whole(newest, head, about, body.getbuffer(), keep=previous)


def read_checkpoint(folder: Path, run: str) -> Checkpoint | None:
    """The newest checkpoint in ``folder`` that is whole and fits run and record; ``None`` if there is none at all.

    If the newest one is damaged, the one before it is used, with a warning.

    Raises:
        CheckpointError: If there are checkpoints and none can be used.
    """
    faults: list[str] = []
    for path in (folder / name for name in CHECKPOINTS):
        if not path.exists():
            continue
        try:
            found = _read(path)
            _check_match(found, path, run)
        except CheckpointError as error:
            faults.append(str(error))
            continue
        if faults:
            warnings.warn(f"{faults[0]} Continuing from {path.name}.", stacklevel=2)
        return found
    if faults:
        raise CheckpointError(f"{' '.join(faults)} To start the run again, remove the folder {folder}.")
    return None


def _read(path: Path) -> Checkpoint:
    with path.open("rb") as file:
        kind, digest = file.readline(LONGEST_LINE).rstrip(b"\n"), file.readline(LONGEST_LINE).rstrip(b"\n")
        body = io.BytesIO(file.read())
    if kind.startswith(b"PK"):
        raise CheckpointError(f"{path} was written by arml 0.1, and this version cannot continue from it.")
    if re.fullmatch(KIND + rb" \d{1,4}", kind) and kind != b"%s %d" % (KIND, VERSION):
        raise CheckpointError(f"{path} has version {kind.split()[1].decode()}; this arml reads version {VERSION}.")
    if kind != b"%s %d" % (KIND, VERSION) or hashlib.sha256(body.getbuffer()).hexdigest().encode() != digest:
        raise CheckpointError(f"{path} is damaged: its content does not have the checksum that it names.")
    try:
        named = json.loads(body.readline())
        state = torch.load(io.BytesIO(body.read()), weights_only=True)
        return Checkpoint(named["run"], Prefix(**named["record"]), state)
    except (ValueError, KeyError, TypeError, RuntimeError, UnpicklingError, EOFError) as error:
        raise CheckpointError(f"{path} is no checkpoint of a run ({type(error).__name__}: {error}).") from error


def _check_match(found: Checkpoint, path: Path, run: str) -> None:
    """Refuses a checkpoint of another run, or one whose record is not the one in its folder."""
    if found.run != run:
        raise CheckpointError(f"{path} belongs to the run {found.run}, not to {run}.")
    record = path.with_name(RECORD)
    if record.is_symlink():
        raise CheckpointError(f"{record} is a link, and what it points to would be overwritten.")
    here = measure_prefix(record, found.record.length) if record.exists() else Prefix(0, "")
    if here.length < found.record.length:
        raise CheckpointError(
            f"{path} was written when {RECORD} had {found.record.length} bytes; now it has {here.length}. "
            "They come from two different attempts, or the record was cut off."
        )
    if here.sha256 != found.record.sha256:
        raise CheckpointError(
            f"{path} does not belong to {record}: the first {found.record.length} bytes of the record are not those "
            "that the checkpoint names."
        )
