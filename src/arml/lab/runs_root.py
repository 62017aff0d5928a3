"""Where the folders of runs are: a local or shared folder, or a URL of any file system that fsspec knows.

At a URL, such as ``s3://bucket/runs``, nothing can be locked, appended to or renamed. A run therefore works in a local
folder, and its files are copied to the URL at every checkpoint and at the end.
"""

import hashlib
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arml.lab.run_folder import CHECKPOINTS, DONE, FAILURE, RECORD

MIRRORED = (RECORD, CHECKPOINTS[0], "warnings.txt", FAILURE, DONE)
"""Files that are copied, in this order: a record before the checkpoint that names it, the mark of completion last."""
READ_BY_REPORTS = (RECORD, FAILURE, DONE)


@dataclass(frozen=True)
class RunsRoot:
    """The folder that holds the folders of runs."""

    local: Path
    """Where runs work."""
    url: str = ""
    """Where their files are copied to; empty: nowhere, ``local`` is the place itself."""

    def pull(self, name: str) -> None:
        """Makes the local folder of a run what it is at the URL."""
        if self.url:
            self._pull_files(name, MIRRORED, set(self._names()))

    def pull_finished(self) -> None:
        """Copies what reports read of every run."""
        if self.url:
            found = set(self._names())
            for name in {path.rpartition("/")[0] for path in found if path.rpartition("/")[2] in READ_BY_REPORTS}:
                self._pull_files(name, READ_BY_REPORTS, found)

    def push(self, name: str) -> None:
        """Makes the URL's folder of a run what it is locally."""
        if not self.url:
            return
        system, base = self._open()
        system.makedirs(f"{base}/{name}", exist_ok=True)
        for file in MIRRORED:
            local, remote = self.local / name / file, f"{base}/{name}/{file}"
            if local.exists():
                system.put_file(str(local), remote)
            elif system.exists(remote):
                system.rm_file(remote)

    def push_file(self, name: str) -> None:
        """Copies a file that belongs to no run to the URL."""
        if self.url:
            system, base = self._open()
            system.put_file(str(self.local / name), f"{base}/{name}")

    def __str__(self) -> str:
        return self.url or str(self.local)

    def clear(self, name: str) -> None:
        """Removes a run's files from the URL: an old checkpoint must not meet a new record."""
        if self.url:
            system, base = self._open()
            for file in reversed(MIRRORED):
                if system.exists(f"{base}/{name}/{file}"):
                    system.rm_file(f"{base}/{name}/{file}")

    def _pull_files(self, name: str, files: tuple[str, ...], found: set[str]) -> None:
        system, base = self._open()
        folder = self.local / name
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            if f"{name}/{file}" in found:
                system.get_file(f"{base}/{name}/{file}", str(folder / file))
            else:
                (folder / file).unlink(missing_ok=True)

    def _names(self) -> list[str]:
        """The files at the URL, by their paths below it."""
        system, base = self._open()
        if not system.exists(base):
            return []
        system.invalidate_cache()  # another machine may have written since
        return [path.removeprefix(base).lstrip("/") for path in system.find(base)]

    def _open(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs  # here, so that local folders need no fsspec

        try:
            system, base = url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise ValueError(f"The folder {self.url} cannot be opened: {error}") from error
        return system, str(base).rstrip("/")


def open_root(place: Path | str) -> RunsRoot:
    """The root at a folder or URL. The command line makes a path of every URL, with one slash where it had two."""
    found = re.fullmatch(r"([a-z][a-z0-9+]+):/+(.*)", str(place))
    if found is None:
        return RunsRoot(Path(place))
    scheme, rest = found.groups()
    url = f"{scheme}://{'/' if scheme in ('file', 'local') else ''}{rest.rstrip('/')}"
    name = re.sub(r"[^A-Za-z0-9]+", "-", url)[-60:]
    return RunsRoot(Path(tempfile.gettempdir()) / f"arml-{name}-{hashlib.sha256(url.encode()).hexdigest()[:10]}", url)


def local_copy(place: Path) -> Path:
    """``place`` itself, or for a URL a local folder with what reports read of its runs."""
    root = open_root(place)
    root.pull_finished()
    return root.local if root.url else place
