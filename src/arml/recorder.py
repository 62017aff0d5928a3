"""The record of your own loop, in the form of the lab's: ``arml report`` reads it."""

import math
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from arml.gradients.signals import Signals
from arml.lab.agreement import TINY, measure_agreement
from arml.lab.own_loop import MAIN_ONLY, OwnLoop, method_name
from arml.lab.trace import Record, Trace, read
from arml.loggers import Logger, default_loggers, flatten
from arml.methods.base import main_direction
from arml.reweighter import Reweighter
from arml.schedule import check_whole
from arml.watch import import_pyplot

Setting = str | int | float | bool


class Recorder:
    """Writes losses, weights, agreement and your own numbers to a record as the training goes on.

    ::

        with Recorder("runs/mine", reweighter, main="diagnosis", settings={"method": "ARML", "seed": 3}) as recorder:
            for batch in batches:
                ...  # your loop, unchanged
                if is_time_to_evaluate:
                    recorder.log({"validation_error": error(model, validation)})
            recorder.finish({"error": error(model, test)})

    ``arml report runs`` then has curves, a verdict and a page. Runs whose settings differ in the seed alone are
    averaged; those that differ in the method, or in any other setting, are lines of one table. A step of the record is
    a call of the Reweighter in training mode.

    Every line is on its way to the disk once it is written. ``state_dict()`` puts all of them there and remembers the
    place; after ``load_state_dict()`` the record goes on from it, without the lines that a crash made obsolete. Under
    ``torch.distributed`` the first process writes.
    """

    def __init__(
        self,
        folder: str | Path,
        reweighter: Reweighter,
        main: str = "main",
        *,
        settings: Mapping[str, Setting] | None = None,
        every: int = 25,
        agreement: bool = False,
        loggers: Sequence[Logger] | None = None,
    ) -> None:
        """Writes nothing before the first step.

        Args:
            folder: where the runs of one experiment are; each run has a folder of its own inside, ``recorder.folder``.
            reweighter: its losses and weights are recorded.
            main: the title of the main task.
            settings: what sets this run apart. ``method`` (else the class of the Reweighter's method; "main only" for
                the main task alone), ``seed``, ``dataset`` (else the name of ``folder``), ``labels`` (their number),
                ``without`` (an auxiliary task that was left out) have a meaning in reports; all others are in titles.
            every: steps between two lines.
            agreement: whether to measure, at every line, how much each task agrees with the main one, which takes a few
                backward passes; ``False``: as far as the method has measured it anyway.
            loggers: where numbers go in addition; ``None``: to TensorBoard, if it is installed.
        """
        check_whole("`every`", every)
        self.reweighter, self.every, self._measures = reweighter, every, agreement
        self.run = describe_run(Path(folder), reweighter, main, settings or {})
        self.folder = Path(folder) / self.run.name()
        self._loggers = loggers
        self._trace: Trace | None = None
        self._position = 0
        self._seen: object = None
        self._last_validation: Record = {}
        self._attach()

    @property
    def path(self) -> Path:
        """The file of the record."""
        return self.folder / "record.jsonl"

    def log(self, numbers: Mapping[str, float]) -> None:
        """Adds a line with your own numbers, such as ``validation_error`` in %."""
        check_numbers(numbers)
        self._last_validation |= {key: value for key, value in numbers.items() if key.startswith("validation_")}
        self._write({"step": self.reweighter.steps, **numbers})

    def finish(self, test: Mapping[str, float], validation: Mapping[str, float] | None = None) -> None:
        """Adds the result, and marks the run as done.

        Args:
            test: measures on test examples by name. There should be an ``"error"``, in %.
            validation: the same on validation examples; ``None``: those that were logged last. Where there are none,
                the record repeats the test error, by which reports choose nothing.
        """
        if "error" not in test:
            raise ValueError(f"`test` should hold an 'error', in %, which reports compare. Got {dict(test)!r}.")
        known = self._last_validation if validation is None else _add_prefix("validation", validation)
        found = {"validation_error": test["error"], **known, **_add_prefix("test", test)}
        check_numbers(found)
        self._write({"step": self.reweighter.steps, **found, "weights": self._weights()})
        if self._trace is not None:
            (self.folder / "done").touch()
        self.close()

    def plot(self) -> Any:
        """The recorded weights over the steps, an axis of matplotlib."""
        lines = [line for line in read(self.path).records if "weights" in line and "test_error" not in line]
        _, axis = import_pyplot().subplots(figsize=(6, 3), layout="constrained")
        for task in self.reweighter.tasks:
            axis.plot([line["step"] for line in lines], [line["weights"].get(task, 0) for line in lines], label=task)
        axis.set_xlabel("step")
        axis.set_ylabel("weight")
        axis.legend()
        return axis

    def _repr_html_(self) -> str:
        return self.reweighter._repr_html_()

    def state_dict(self) -> dict[str, Any]:
        """The place in the record; all lines before it are safely on disk."""
        position = self._position if self._trace is None else self._trace.position()
        return {"position": position, "validation": dict(self._last_validation)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on at the place of ``state``; lines after it are dropped."""
        self.close()
        self._position, self._last_validation = state["position"], dict(state["validation"])
        self._attach()
        found = self.path.stat().st_size if self.path.exists() else 0
        if found < self._position and _is_first_process():
            warnings.warn(
                f"{self.path} has {found} bytes, but the checkpoint was made after {self._position}: the record begins "
                "again. Copy it to its place before resuming if you want to keep it.",
                stacklevel=2,
            )
            self._position = 0

    def close(self) -> None:
        """Records no further steps."""
        if self._record_step in self.reweighter.watchers:
            self.reweighter.watchers.remove(self._record_step)
        if self._trace is not None:
            self._position = self._trace.position()
            self._trace.close()
            self._trace = None
            for logger in self._loggers or ():
                logger.close()

    def __enter__(self) -> "Recorder":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _attach(self) -> None:
        if self._record_step not in self.reweighter.watchers:
            self.reweighter.watchers.append(self._record_step)

    def _record_step(self, losses: Sequence[Tensor | None]) -> None:
        """Called at every training step; writes a line at every ``every``-th."""
        step = self.reweighter.steps + 1
        if step % self.every:
            return
        names = ("main", *self.reweighter.tasks)
        given = {name: loss for name, loss in zip(names, losses, strict=True) if loss is not None}
        numbers = torch.stack([loss.detach().double().cpu() for loss in given.values()]).tolist()
        record: Record = {"step": step, "losses": _finite(dict(zip(given, numbers, strict=True)))}
        record["weights"] = self._weights()
        self._write(record | (self._measure(given) if self._measures else self._known_agreement()))

    def _weights(self) -> dict[str, float]:
        """None where the main task is alone, as in the lab's records."""
        return {} if self.run.method == MAIN_ONLY else self.reweighter.weights

    def _measure(self, losses: Mapping[str, Tensor]) -> Record:
        """How the tasks in the batch relate to the main one, as the lab measures it."""
        aux = {name: loss for name, loss in losses.items() if name != "main"}
        if "main" not in losses or not aux:
            return {}
        found = measure_agreement(losses["main"], aux, self.reweighter.read_shared())
        return {name: _finite(numbers) for name, numbers in found.items()}

    def _known_agreement(self) -> Record:
        """The same from what the method measured at its last update, as far as it is new and holds it."""
        signals = self.reweighter.signals
        if signals is None or signals is self._seen:
            return {}
        self._seen = signals
        products = find_main_products(self.reweighter)
        present = signals.seen().tolist()
        if products is None or not present[0]:
            return {}
        here = [place for place, is_here in enumerate(present) if is_here and place > 0]
        norms = find_norms(signals)
        found = {"agreement": products / products[0].clamp(min=TINY)}
        if norms is not None:
            found["cosine"] = (products / (norms[0] * norms).clamp(min=TINY)).clamp(-1, 1)
        tasks = self.reweighter.tasks
        return {name: _finite({tasks[i - 1]: float(numbers[i]) for i in here}) for name, numbers in found.items()}

    def _write(self, record: Record) -> None:
        if not _is_first_process():
            return
        if self._trace is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / "done").unlink(missing_ok=True)
            self._trace = Trace(self.path, self.run, self._position)
            self._loggers = default_loggers(self.folder) if self._loggers is None else self._loggers
        self._trace.write(record)
        for logger in self._loggers or ():
            logger.log(record["step"], flatten(record))


def describe_run(folder: Path, reweighter: Reweighter, main: str, settings: Mapping[str, Setting]) -> OwnLoop:
    """The run that ``settings`` describe."""
    given = dict(settings)
    seed, labels = given.pop("seed", 0), given.pop("labels", None)
    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"`settings`: the seed should be a whole number of at least 0. Got {seed!r}.")
    if labels is not None and (isinstance(labels, str) or not 0 < labels < math.inf):
        raise ValueError(f"`settings`: labels should be a positive number. Got {labels!r}.")
    method = method_name(str(given.pop("method", type(reweighter.method).__name__)))
    dataset, without = str(given.pop("dataset", folder.name)), str(given.pop("without", ""))
    others = tuple(f"{name} {value}" for name, value in sorted(given.items()))
    return OwnLoop(
        method=method, seed=seed, dataset=dataset, main=main, labels=labels, without=without, other_settings=others
    )


def find_main_products(reweighter: Reweighter) -> Tensor | None:
    """<g_0, g_i> of every task [1 + K] at the last update, or how well answers fit, if the method asked for them."""
    signals = reweighter.signals
    if signals is None:
        return None
    if signals.gram is not None:
        return signals.gram[0]
    directions = reweighter.directions()
    if directions is None or signals.alignment is None:
        return None if signals.transfer is None else signals.transfer[0]
    towards_main = (directions == main_direction(directions[0])).all(dim=1).nonzero()
    return signals.alignment[int(towards_main[0])] if len(towards_main) else None


def find_norms(signals: Signals) -> Tensor | None:
    """||g_i|| of every task [1 + K], if the method asked for them."""
    return signals.gram.diagonal().clamp(min=0).sqrt() if signals.gram is not None else signals.norms


def check_numbers(numbers: Mapping[str, object]) -> None:
    """Raises unless all values are finite numbers."""
    wrong = {key: value for key, value in numbers.items() if not _is_number(value)}
    if wrong:
        raise ValueError(f"A record takes finite numbers. Got {wrong!r}. Leave such a number out.")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _finite(numbers: Mapping[str, float]) -> dict[str, float]:
    """JSON has no NaN."""
    return {name: number for name, number in numbers.items() if math.isfinite(number)}


def _add_prefix(examples: str, measures: Mapping[str, float]) -> Record:
    return {f"{examples}_{name}": value for name, value in measures.items()}


def _is_first_process() -> bool:
    return not (dist.is_available() and dist.is_initialized()) or dist.get_rank() == 0
