"""Lightning: weights are logged, checkpointed and restored with the module."""

from collections.abc import Mapping
from typing import Any

from arml.integrations.state import Parts
from arml.loggers import require
from arml.recorder import Recorder
from arml.reweighter import Reweighter
from arml.sampling import SourceSampler

require("lightning", "arml.integrations.lightning", "2.2")
from lightning.pytorch import Callback, LightningModule, Trainer  # noqa: E402 -- a missing package is named above


class ARMLCallback(Callback):  # type: ignore[misc]
    """Logs the weights at every step that Lightning logs, and keeps the state of all parts in checkpoints.

    ``training_step`` returns ``reweighter(main, aux)``, or passes it to ``self.manual_backward``. The callback works
    with both, under every precision and strategy that the Reweighter takes, and with gradient accumulation: a call of
    the Reweighter is a micro-batch.
    """

    def __init__(
        self, reweighter: Reweighter, recorder: Recorder | None = None, sampler: SourceSampler | None = None
    ) -> None:
        """A recorder and a sampler, if there are any, are saved with the Reweighter."""
        super().__init__()
        self._parts = Parts(reweighter, recorder, sampler)

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Measures with the scale of float16, which only exists from here on."""
        del pl_module
        scaler = getattr(trainer.precision_plugin, "scaler", None)
        if scaler is not None:
            self._parts.reweighter.loss_scale = scaler

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: object, batch: object, batch_idx: int
    ) -> None:
        """Logs the weights; all processes hold the same ones."""
        del trainer, outputs, batch, batch_idx
        pl_module.log_dict(self._parts.numbers())

    def on_fit_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Puts the record on the disk."""
        del trainer, pl_module
        if self._parts.recorder is not None:
            self._parts.recorder.state_dict()

    def state_dict(self) -> dict[str, Any]:
        """The state of all parts."""
        return self._parts.state_dict()

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restores all parts."""
        self._parts.load_state_dict(state_dict)
