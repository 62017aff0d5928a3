"""Fingerprints of the files a run reads: runs on an earlier content are not taken for runs on the present one."""

import hashlib
from pathlib import Path


def file_fingerprint(path: str) -> str:
    """A hash of the file's content; empty if no file is named."""
    if not path:
        return ""
    if not Path(path).is_file():
        raise ValueError(f"There is no file {path}.")
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def folder_fingerprint(folder: str) -> str:
    """A hash of the names, sizes and modification times of all files below the folder; empty if none is named."""
    if not folder:
        return ""
    found = sorted(path for path in Path(folder).rglob("*") if path.is_file())
    facts = [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in found]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]
