"""Downloads one file over HTTP and continues where an earlier attempt stopped."""

import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import TypeAlias
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from arml.lab.data.base import DataError

RETRIES = 4
"""Consecutive attempts without a new byte before a download fails."""
PAUSE = 0.5
"""Seconds before a retry; doubled for every consecutive attempt without a new byte."""
MOST_BYTES = 2**31
"""Size of a file. The largest one in the registry has 182 million bytes."""
MOST_SECONDS = 12 * 3600
"""Time for all attempts together: a server that sends a byte now and then would hold a command for ever."""
CHUNK = 1 << 16

ReportBytes: TypeAlias = Callable[[int, int | None], None]
"""Receives the number of bytes so far, and the number of all bytes if it is known."""


class _CutError(Exception):
    """The server stopped in the middle; the bytes so far are kept."""


@dataclass(frozen=True)
class Resumable:
    """A downloader for pooch that writes to ``part`` and continues from the bytes already there."""

    part: Path
    progress: bool = True

    def __call__(self, url: str, output_file: str, pooch: object) -> None:
        """Downloads ``url`` and moves it to ``output_file`` once it is complete."""
        del pooch
        if not url.startswith(("http://", "https://")):
            raise DataError(f"{url}: files are downloaded from addresses that begin with http:// or https:// only.")
        if self.part.is_symlink():
            self.part.unlink()  # it would lead to another file
        with _bar(self.part.stem, self.progress) as show:
            self._insist(url, show)
        self.part.replace(output_file)

    def _insist(self, url: str, show: ReportBytes) -> None:
        furthest, idle, end = _size(self.part), 0, time.monotonic() + MOST_SECONDS
        while True:
            try:
                return _continue(url, self.part, show, end)
            except (_CutError, URLError, HTTPException, ConnectionError, TimeoutError, ssl.SSLError) as error:
                reached = _size(self.part)
                # Counting only attempts without progress lets a long download survive any number of cuts.
                idle = 0 if reached > furthest else idle + 1
                furthest = max(furthest, reached)
                if idle > RETRIES:
                    raise DataError(
                        f"{url}: the download stopped after {reached} bytes, and {RETRIES} more attempts brought "
                        f"nothing ({error}). What came so far is kept in {self.part}: run the same command later "
                        "to go on from there, or use another server with base_url."
                    ) from error
            time.sleep(PAUSE * 2**idle)


def _continue(url: str, part: Path, show: ReportBytes, end: float) -> None:
    """Makes one attempt: requests what is missing from ``part`` and appends it."""
    have = _size(part)
    headers = {"User-Agent": "arml", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        response = urlopen(Request(url, headers=headers), timeout=30)  # nosec B310 -- the scheme was checked
    except HTTPError as error:
        with error:
            _handle_http_error(url, part, error)
    else:
        with response:
            _receive(response, part, have, show, end)


def _handle_http_error(url: str, part: Path, error: HTTPError) -> None:
    """Decides what an answer without content means: done, start again, try again, or give up."""
    if error.code == 416:
        # The server has nothing beyond our bytes: they are the whole file, or not its beginning.
        if error.headers.get("Content-Range", "").endswith(f"/{_size(part)}"):
            return
        part.unlink()
        raise _CutError("the server has less than was already downloaded")
    if error.code < 500 and error.code not in (408, 429):
        raise DataError(
            f"{url}: the server answered {error.code} ({error.reason}). Check the address in a browser; if the file "
            "has moved, download it by hand into the data folder or pass another base_url."
        )
    raise _CutError(f"the server answered {error.code} ({error.reason})")


def _receive(response: HTTPResponse, part: Path, have: int, show: ReportBytes, end: float) -> None:
    begins = response.headers.get("Content-Range", "")
    if response.status == 206 and not begins.startswith(f"bytes {have}-"):
        part.unlink(missing_ok=True)
        raise _CutError(f"the server sent another part ({begins!r}) than was asked for")
    if response.status != 206:
        have = 0  # The server ignores Range and sends everything.
    length = response.headers.get("Content-Length")
    total = None if length is None else have + int(length)
    _check_size(response.url, part, total or 0)
    with part.open("ab" if have else "wb") as file:
        while chunk := response.read(CHUNK):
            file.write(chunk)
            have += len(chunk)
            show(have, total)
            _check_size(response.url, part, have)
            if time.monotonic() > end:
                raise DataError(
                    f"{response.url}: the download took more than {MOST_SECONDS} seconds. What came so far is kept in "
                    f"{part}: run the same command later to go on from there, or use another server with base_url."
                )
    if total is not None and have < total:
        raise _CutError(f"the connection was cut after {have} of {total} bytes")


def _check_size(url: str, part: Path, size: int) -> None:
    if size > MOST_BYTES:
        part.unlink(missing_ok=True)
        raise DataError(
            f"{url}: the server sends {size} bytes or more, and no file of a data set has more than {MOST_BYTES}. "
            "It is another file: use another server with base_url."
        )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@contextmanager
def _bar(title: str, visible: bool) -> Iterator[ReportBytes]:
    if not visible:
        yield lambda have, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task(title, total=None)
        yield lambda have, total: bars.update(task, completed=have, total=total)
