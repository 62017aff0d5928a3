"""One process per run folder: a second one is told who holds it."""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

LOCK, HOLDER = "lock", "lock.json"


class HeldError(ValueError):
    """Somebody else is at work in the folder."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Holds ``folder``, which is made if necessary.

    The operating system keeps the lock and releases it when its holder ends, however it ends: no lock is ever stale.
    Where a file system cannot lock, the existence of a file counts; it is stale once its process is gone.

    Raises:
        HeldError: If another process, here or on another machine with the same folder, holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / LOCK, timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise HeldError(f"{folder} is in use by {_describe_holder(folder)}. Wait until it ends, or stop it.") from None
    try:
        about = {"process": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
        (folder / HOLDER).unlink(missing_ok=True)  # it may be a link to somewhere else
        (folder / HOLDER).write_text(json.dumps(about) + "\n")
        yield
    finally:
        (folder / HOLDER).unlink(missing_ok=True)
        lock.release()


def _describe_holder(folder: Path) -> str:
    try:
        about = json.loads((folder / HOLDER).read_text())
        return f"process {about['process']} on {about['host']} since {about['since']}"
    except (OSError, ValueError, KeyError, TypeError):  # it has just begun, or just ended
        return "another process"
