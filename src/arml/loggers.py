"""Where the numbers of a record go in addition: TensorBoard, Weights & Biases, MLflow. Each needs its own package."""

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol


class Logger(Protocol):
    """Takes named numbers of a step."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Logs ``numbers`` of ``step``."""
        ...

    def close(self) -> None:
        """Ends the log."""
        ...


class TensorBoard:
    """Writes events for ``tensorboard --logdir``."""

    def __init__(self, folder: str | Path) -> None:
        require("tensorboard", "TensorBoard")
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Adds scalars."""
        for name, number in numbers.items():
            self._writer.add_scalar(name, number, step)

    def close(self) -> None:
        """Writes what is left."""
        self._writer.close()


class WandB:
    """Logs to a run of Weights & Biases: pass what ``wandb.init(...)`` returned, or it begins one itself."""

    def __init__(self, run: Any = None, *, project: str = "arml", mode: str = "online") -> None:
        wandb: Any = require("wandb", "WandB")
        self._owns_run = run is None
        self._run = wandb.init(project=project, mode=mode) if run is None else run

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Logs with the step as a number of its own, since other parts of a loop count differently."""
        self._run.log({**numbers, "arml/step": step})

    def close(self) -> None:
        """Ends the run, if it began here."""
        if self._owns_run:
            self._run.finish()


class MLflow:
    """Logs metrics to a run of MLflow: the active one, or a new one of ``experiment``."""

    def __init__(self, *, experiment: str | None = None, tracking_uri: str | None = None) -> None:
        self._mlflow: Any = require("mlflow", "MLflow")
        if tracking_uri is not None:
            self._mlflow.set_tracking_uri(tracking_uri)
        if experiment is not None:
            self._mlflow.set_experiment(experiment)
        self._owns_run = self._mlflow.active_run() is None
        self._run = self._mlflow.start_run() if self._owns_run else self._mlflow.active_run()

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Logs metrics; spaces and signs that MLflow refuses in names become underscores."""
        allowed = {"".join(c if c.isalnum() or c in "_-. /" else "_" for c in name): x for name, x in numbers.items()}
        self._mlflow.log_metrics(allowed, step=step, run_id=self._run.info.run_id)

    def close(self) -> None:
        """Ends the run, if it began here."""
        if self._owns_run:
            self._mlflow.end_run()


def default_loggers(folder: Path) -> Sequence[Logger]:
    """TensorBoard, if it is installed."""
    return [TensorBoard(folder / "tensorboard")] if find_spec("tensorboard") else []


def flatten(record: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a line of a record, by name.

    >>> flatten({"step": 3, "losses": {"main": 0.5}, "validation_error": 9.0})
    {'losses/main': 0.5, 'validation_error': 9.0}
    """
    found: dict[str, float] = {}
    for key, value in record.items():
        if isinstance(value, Mapping):
            found |= {f"{key}/{name}": number for name, number in value.items()}
        elif key != "step":
            found[key] = value
    return found


def require(package: str, what: str, least: str = "") -> ModuleType:
    """The package; an error that says what to do if it is missing, or older than ``least``."""
    wanted = f"{package}>={least}" if least else package
    try:
        module = import_module(package)
    except ImportError as error:
        raise ImportError(f"{what} needs the package {package}. Install it with `pip install '{wanted}'`.") from error
    found = str(getattr(module, "__version__", "0"))
    if least and _numbers(found) < _numbers(least):
        raise ImportError(f"{what} needs {wanted}. Found {found}. Update it with `pip install -U '{wanted}'`.")
    return module


def _numbers(version: str) -> list[int]:
    """The first two numbers of a version.

    >>> _numbers("2.13.0+cpu") > _numbers("2.6")
    True
    """
    return [int("".join(c for c in part if c.isdigit()) or 0) for part in version.split(".")[:2]]
