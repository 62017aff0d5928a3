"""The device that trains, and the precision it computes in."""

import os
from multiprocessing import current_process
from typing import Literal, TypeAlias

import torch
from torch import Tensor

CPU = torch.device("cpu")
PrecisionName: TypeAlias = Literal["fp32", "bf16", "fp16", "fp64"]
AUTOCAST: dict[PrecisionName, torch.dtype] = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""Precisions in which only the passes are computed; parameters stay in float32."""
FUSED = ("cpu", "cuda", "mps")
"""Devices whose optimisers take a step in one operation."""


def choose_device(name: str) -> torch.device:
    """The device called ``name``: auto, cpu, cuda, cuda:1, mps, ...; auto is the best one that torch finds.

    Without a number, the processes of torchrun, and the workers of a sweep, spread over all devices of the machine.
    """
    found = torch.accelerator.current_accelerator(check_available=True)
    if name == "auto":
        return CPU if found is None else _spread(found)
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"--device should be auto, cpu, cuda, cuda:NUMBER or mps. Got {name!r}.") from None
    if device.type == "cpu":
        return device
    if found is None or found.type != device.type:
        has = "no accelerator" if found is None else found.type
        raise ValueError(
            f"--device {name} is not available: torch {torch.__version__} finds {has} here. Choose --device auto or "
            "cpu, or install a build of torch for your device, see https://pytorch.org/get-started/locally/."
        )
    if device.index is not None and device.index >= torch.accelerator.device_count():
        raise ValueError(f"--device {name} is not there: torch finds {torch.accelerator.device_count()} of them.")
    return device if device.index is not None else _spread(device)


def _spread(device: torch.device) -> torch.device:
    if device.type == "mps":  # there is one
        return device
    worker = current_process().name.rpartition("-")[2]  # such as SpawnProcess-3
    number = int(os.environ.get("LOCAL_RANK", int(worker) - 1 if worker.isdecimal() else 0))
    return torch.device(device.type, number % torch.accelerator.device_count())


def describe_device(device: torch.device) -> str:
    """The device for people, such as ``cuda: NVIDIA A100-SXM4-40GB``."""
    return f"cuda: {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


def draw_source(device: torch.device, seed: int) -> torch.Generator:
    """A generator on ``device``, so that images are changed there; on the CPU if the device has none."""
    try:
        return torch.Generator(device).manual_seed(seed)
    except RuntimeError:
        return torch.Generator().manual_seed(seed)


def random_state(device: torch.device) -> Tensor | None:
    """The random state of ``device``, from which dropout draws; ``None`` for the CPU, whose state is saved anyway."""
    if device.type == "cpu":
        return None
    module = torch.get_device_module(device)
    state: Tensor = module.get_rng_state() if device.type == "mps" else module.get_rng_state(device)
    return state


def set_random_state(device: torch.device, state: Tensor) -> None:
    """Continues from :func:`random_state`."""
    module = torch.get_device_module(device)
    module.set_rng_state(state) if device.type == "mps" else module.set_rng_state(state, device)
