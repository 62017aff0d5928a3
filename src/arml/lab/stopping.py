"""Stopping on purpose: Ctrl-C and SIGTERM end training between two steps, with a checkpoint.

Before and after training, a command stops at once.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stopped(KeyboardInterrupt):
    """Training ended early because somebody asked for it. Everything up to here is kept."""

    def __init__(self, reason: int, text: str) -> None:
        super().__init__(text)
        self.exit_code = 128 + reason
        """What a shell expects: 130 after Ctrl-C, 143 after SIGTERM."""


class Stop:
    """A request to stop, and where it came from."""

    def __init__(self) -> None:
        self.reason: int = 0
        """Number of the signal; 0: nobody asked."""

    def ask(self, reason: int) -> None:
        """Asks for a stop. The first reason counts."""
        self.reason = self.reason or reason

    def __bool__(self) -> bool:
        return self.reason != 0


@contextmanager
def leave_on_ctrl_c() -> Iterator[None]:
    """Ends the process at once on Ctrl-C, while packages are imported and there is nothing to keep.

    An exception would not do: packages swallow or wrap it, and fail later with half of a module.
    Where Ctrl-C is ignored or handled by somebody else, it stays so.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        os.write(2, b"arml: stopped before it began.\n")
        os._exit(128 + number)

    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def end_on_sigterm() -> Iterator[None]:
    """Turns SIGTERM into :class:`Stopped`, as Python turns Ctrl-C into ``KeyboardInterrupt``."""

    def handle(number: int, frame: FrameType | None) -> None:
        del frame
        raise Stopped(number, "stopped by SIGTERM. Finished work is kept")

    if threading.current_thread() is not threading.main_thread():  # where Python allows no handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stop_on_signals(stop: Stop | None = None) -> Iterator[Stop]:
    """Turns Ctrl-C and SIGTERM into a request to stop. A second Ctrl-C interrupts at once.

    Outside the main thread, where Python allows no handlers, signals do what they did before.
    """
    stop = Stop() if stop is None else stop

    def handle(number: int, frame: FrameType | None) -> None:
        if stop and number == signal.SIGINT:
            signal.default_int_handler(number, frame)
        stop.ask(number)

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {
        number: signal.signal(number, handle) for number in SIGNALS
    }
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
