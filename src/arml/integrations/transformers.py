"""Hugging Face's Trainer: weights are logged, checkpointed and restored."""

from collections.abc import Mapping
from typing import Any

from arml.integrations.state import Parts
from arml.loggers import require
from arml.recorder import Recorder
from arml.reweighter import Reweighter
from arml.sampling import SourceSampler

require("transformers", "arml.integrations.transformers", "4.46")
from transformers import Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments  # noqa: E402
from transformers.trainer_callback import ExportableState  # noqa: E402


class ARMLCallback(TrainerCallback, ExportableState):  # type: ignore[misc]
    """Adds the weights to what the Trainer logs, and keeps the state of all parts in its checkpoints.

    ``compute_loss`` of your Trainer returns ``reweighter(main, aux)``. ``ARMLCallback(reweighter).attach(trainer)``
    does the rest. A call of the Reweighter is a micro-batch.
    """

    def __init__(
        self, reweighter: Reweighter, recorder: Recorder | None = None, sampler: SourceSampler | None = None
    ) -> None:
        """A recorder and a sampler, if there are any, are saved with the Reweighter."""
        self._parts = Parts(reweighter, recorder, sampler)

    def attach(self, trainer: Trainer) -> Trainer:
        """Makes ``trainer`` use this callback, and returns it.

        It comes before those that report, so that they see the weights. The joint loss is a mean over the micro-batch,
        so the Trainer must divide it by the number of micro-batches, as it does for models that take no
        ``num_items_in_batch``. A sampler knows by itself where to go on: no batches are skipped on resuming.
        """
        trainer.callback_handler.callbacks.insert(0, self)
        trainer.model_accepts_loss_kwargs = False
        trainer.args.ignore_data_skip |= self._parts.sampler is not None
        if trainer.accelerator.scaler is not None:
            self._parts.reweighter.loss_scale = trainer.accelerator.scaler
        return trainer

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object
    ) -> None:
        """Restores all parts where the Trainer resumes from a checkpoint."""
        del args, control, kwargs
        saved: Any = state.stateful_callbacks.setdefault(type(self).__name__, {})
        if state.global_step > 0 and isinstance(saved, Mapping) and saved:
            self._parts.load_state_dict(saved["attributes"])

    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: object) -> None:
        """Adds the weights to training logs, also for the callbacks that come later."""
        del args, control
        logs = kwargs.get("logs")
        if isinstance(logs, dict) and "loss" in logs:
            logs.update(self._parts.numbers())
            state.log_history[-1].update(self._parts.numbers())

    def state(self) -> dict[str, Any]:
        """What the Trainer writes into its checkpoints."""
        return {"args": {}, "attributes": self._parts.state_dict()}
