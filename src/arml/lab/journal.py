"""What a run writes while it trains: its record and TensorBoard's events, by the first process only."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from torch.utils.tensorboard import SummaryWriter

from arml._distributed import process_rank
from arml.lab.run import Run
from arml.lab.trace import Record, Trace

Watch = Callable[[Record], None]
"""Receives every record as it is written, for progress bars."""


class Journal:
    """Writes every record to the file, to TensorBoard, and to whoever watches."""

    def __init__(
        self, folder: Path, run: Run, watch: Watch, *, step: int = 0, position: int = 0, hardware: dict[str, str]
    ) -> None:
        """Starts a new record in ``folder``, or continues at ``step``, whose line begins at ``position``."""
        self._watch, self._open = watch, ExitStack()
        self.trace: Trace | None = None
        """``None`` on all processes but the first."""
        if process_rank() == 0:
            folder.mkdir(parents=True, exist_ok=True)
            self.trace = self._open.enter_context(Trace(folder / "record.jsonl", run, position, hardware))
            self._events = SummaryWriter(str(folder / "tensorboard"), purge_step=step)
            self._open.callback(self._events.close)

    def write(self, record: Record) -> None:
        """Adds a record."""
        if self.trace is not None:
            self.trace.write(record)
            add_scalars(self._events, record)
            self._watch(record)

    def note(self, record: Record) -> None:
        """Adds a line that is no step: to the file alone."""
        if self.trace is not None:
            self.trace.write(record)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, where)


def add_scalars(events: SummaryWriter, record: Record) -> None:
    """Adds the numbers of a record to TensorBoard's curves."""
    for key, value in record.items():
        if isinstance(value, dict):
            for name, number in value.items():
                events.add_scalar(f"{key}/{name}", number, record["step"])
        elif key != "step":
            events.add_scalar(key, value, record["step"])
