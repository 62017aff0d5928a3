"""Commands of arml in processes of their own, which can be limited, interrupted and killed.

Every command is a fork of this process, which has imported arml already: starting Python anew takes seconds each time.
"""

import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from arml.cli import main

for _slow in (
    "pandas",
    "PIL.Image",
    "scipy.stats",
    "sklearn.preprocessing",
    "matplotlib.figure",
    "torch.utils.tensorboard",
):
    import_module(_slow)  # commands import these where they need them; here, once for all of them

LEAST_WORK = 0.0025
"""Share of the time limit that a command must have worked in a quarter of it, or it does nothing."""
TRACEBACK = "Traceback (most recent call last)"


class Answer(NamedTuple):
    """How a command ended."""

    code: int
    """Exit code; minus the number of the signal that ended it."""
    output: str
    """What it printed, errors included."""
    seconds: float

    def fault(self, *expected: int) -> str:
        """What is wrong with it: an unexpected code or signal, or a traceback of Python; empty if nothing is."""
        if TRACEBACK in self.output:
            return f"traceback, exit {self.code}: {self.output.strip().splitlines()[-1][:200]}"
        return "" if self.code in expected else f"exit {self.code}: {' '.join(self.output.split())[-200:]}"


class Process:
    """A running command."""

    def __init__(self, words: Sequence[str], log: Path, *, file_size: int | None = None, memory: int | None = None):
        log.parent.mkdir(parents=True, exist_ok=True)
        self.log, self.started = log, time.monotonic()
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            _become(words, log, file_size, memory)

    def send(self, number: int) -> None:
        """Sends a signal to the command alone, not to its workers."""
        os.kill(self.pid, number)

    def wait(self, seconds: float) -> Answer | None:
        """The answer, or ``None`` if the command is still running after ``seconds``."""
        end = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                took = time.monotonic() - self.started
                return Answer(os.waitstatus_to_exitcode(status), self.log.read_text(errors="replace"), took)
            if time.monotonic() > end:
                return None
            time.sleep(0.01)

    def family(self) -> list[int]:
        """The processes of the command's session that are still there: the command and its workers."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                fields = (place / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[3]) == self.pid and fields[0] != "Z":
                found.append(int(place.name))
        return found

    def worked(self) -> float:
        """Seconds of processor time that the command and its workers have had."""
        total = 0.0
        for pid in self.family():
            with suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
        return total

    def end(self) -> None:
        """Kills whatever is left of the command and its workers."""
        for pid in self.family():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def run(words: Sequence[str], log: Path, *, timeout: float = 300, **limits: int) -> Answer:
    """Runs a command to its end; one that hangs is killed and answers with code -9.

    It hangs if it is not done after ``timeout`` seconds and does nothing, or has worked for so long. A command that
    gets little of a busy machine has more time.
    """
    process = Process(words, log, **limits)
    answer, before = process.wait(timeout), -timeout
    while answer is None and before + LEAST_WORK * timeout < (worked := process.worked()) < timeout:
        before, answer = worked, process.wait(timeout / 4)
    process.end()
    return answer or process.wait(60) or Answer(-9, "cannot be killed", timeout)


def _become(words: Sequence[str], log: Path, file_size: int | None, memory: int | None) -> None:
    """Turns a fork into the command; never returns."""
    code = 1
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        if file_size is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, resource.RLIM_INFINITY))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, resource.RLIM_INFINITY))
        code = main(list(words))
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    except BaseException:  # noqa: BLE001 -- as the interpreter would
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
