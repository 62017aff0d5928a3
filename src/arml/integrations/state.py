"""The state of a Reweighter, its Recorder and its SourceSampler in one dictionary."""

import base64
from collections.abc import Mapping
from typing import Any

import torch

from arml.recorder import Recorder
from arml.reweighter import Reweighter
from arml.sampling import SourceSampler


class Parts:
    """What is saved and restored together."""

    def __init__(
        self, reweighter: Reweighter, recorder: Recorder | None = None, sampler: SourceSampler | None = None
    ) -> None:
        self.reweighter, self.recorder, self.sampler = reweighter, recorder, sampler
        self._begin = reweighter.steps

    def state_dict(self) -> dict[str, Any]:
        """The state of all parts as plain data, which JSON can hold, too."""
        packed = self.reweighter.get_extra_state().cpu().numpy().tobytes()
        return {
            "reweighter": base64.b64encode(packed).decode(),
            "recorder": None if self.recorder is None else self.recorder.state_dict(),
            # A loader may have drawn ahead: the batches that were trained on are the calls of the Reweighter.
            "sampler": None if self.sampler is None else self.sampler.state_dict(self.reweighter.steps - self._begin),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores every part that was saved and is here."""
        packed = bytearray(base64.b64decode(state["reweighter"]))
        self.reweighter.set_extra_state(torch.frombuffer(packed, dtype=torch.uint8))
        self._begin = self.reweighter.steps
        if self.recorder is not None and state["recorder"] is not None:
            self.recorder.load_state_dict(state["recorder"])
        if self.sampler is not None and state["sampler"] is not None:
            self.sampler.load_state_dict(state["sampler"])

    def numbers(self) -> dict[str, float]:
        """What to log: every weight, and the share where there is a fade."""
        found = {f"weight/{name}": weight for name, weight in self.reweighter.weights.items()}
        return found if self.reweighter.fade is None else {**found, "share": self.reweighter.share}
