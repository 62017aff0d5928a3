"""Where data live: examples on the device that trains, or on the CPU if they do not fit there."""

import torch
from torch import Tensor

SHARE = 0.25
"""The share of the device's free memory that data sets may take; networks and their gradients need the rest."""


class Placement:
    """Takes rows of data sets to a device without waiting for it.

    A data set that fits is copied there once. Rows of a larger one are gathered on the CPU and copied at every step,
    from pinned memory, while the device still computes the step before.
    """

    def __init__(self, device: torch.device, dtype: torch.dtype | None = None) -> None:
        """``dtype`` is that of inputs, if they are not float32."""
        self.device, self.dtype = device, dtype
        self._budget: float | None = None
        self._kept: dict[int, tuple[Tensor, Tensor | None]] = {}

    def rows(self, data: Tensor, rows: Tensor) -> Tensor:
        """The ``rows`` of ``data`` [N, ...], on the device."""
        if self.device.type == "cpu" or data.device == self.device:
            return data[rows]
        there = self._keep(data)
        return self.send(data[rows]) if there is None else there[self.send(rows)]

    def inputs(self, x: Tensor) -> Tensor:
        """Preprocessed examples in the precision of the network."""
        return x if self.dtype is None else x.to(self.dtype)

    def send(self, x: Tensor) -> Tensor:
        """A copy of ``x`` on the device."""
        if self.device.type == "cpu":
            return x
        pinned = x.pin_memory() if self.device.type == "cuda" else x
        return pinned.to(self.device, non_blocking=True)

    def _keep(self, data: Tensor) -> Tensor | None:
        """The copy of a data set on the device; ``None`` if it does not fit."""
        if id(data) not in self._kept:
            if self._budget is None:
                self._budget = SHARE * free_memory(self.device)
            fits = data.nbytes <= self._budget
            self._budget -= data.nbytes if fits else 0
            # With the data set itself, so that no other one can get its id.
            self._kept[id(data)] = (data, data.to(self.device) if fits else None)
        return self._kept[id(data)][1]


ON_CPU = Placement(torch.device("cpu"))


def free_memory(device: torch.device) -> float:
    """Free bytes on ``device``, as far as torch can tell; 0 if it cannot."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    if device.type == "mps":
        return float(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    return 0.0
