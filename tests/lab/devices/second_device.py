"""A second type of device, called ``second``, for machines without one: it computes on the CPU, and checks.

An operation on tensors of both devices raises, as it would on a GPU. Everything that would make the CPU wait for a GPU
is written down. Importing this file registers the device with torch for the rest of the process.
"""

import traceback
from pathlib import Path
from types import SimpleNamespace

import torch
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend


class Backend(_DummyBackendModule):
    """What torch asks a device about itself."""

    seed = 0
    """All that there is of its random state: it draws on the CPU."""

    def get_amp_supported_dtype(self):
        return [torch.bfloat16, torch.float16]

    def manual_seed(self, seed):
        self.seed = seed

    def get_rng_state(self, device):
        return torch.tensor(self.seed)

    def set_rng_state(self, state, device):
        self.seed = int(state)


_setup_privateuseone_for_python_backend("second", Backend())
DEVICE = torch.device("second:0")
COPIES = ("aten::_to_copy", "aten::copy_")
READS = ("aten::_local_scalar_dense", "aten::nonzero", "aten::equal")

waits: list[str] = []
"""The operations so far that would have waited for the device, each with the line of ours that asked for it."""


class Second(torch.Tensor):
    """A tensor on the second device; ``inner`` holds its numbers."""

    @staticmethod
    def __new__(cls, inner):
        layout = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=DEVICE, **layout)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})

    def tolist(self):
        note("tolist")
        return self.inner.tolist()

    def new_tensor(self, data):
        note("a copy")
        return Second(self.inner.new_tensor(data))

    def __deepcopy__(self, memo):
        copy = self.detach().clone()
        copy = torch.nn.Parameter(copy, self.requires_grad) if isinstance(self, torch.nn.Parameter) else copy
        memo[id(self)] = copy
        return copy


class SecondDevice(TorchDispatchMode):
    """Inside, tensors can be made on the second device."""

    def __enter__(self):
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device=...) is then a copy that is seen here
        return super().__enter__()

    def __exit__(self, *error):
        torch._C._set_only_lift_cpu_tensors(False)
        return super().__exit__(*error)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return run(func, args, kwargs or {})


def note(what):
    """Writes down a wait."""
    ours = [line for line in traceback.extract_stack() if "/arml/" in line.filename]
    waits.append(f"{what} at {Path(ours[-1].filename).name}: {ours[-1].line}" if ours else what)


def inner_of(value):
    return value.inner if isinstance(value, Second) else value


def run(func, args, kwargs):
    """Runs an operation on the CPU; its result is on the device that a GPU would have left it on."""
    name, tensors = func._schema.name, [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
    second = [one for one in tensors if isinstance(one, Second)]
    others = [one for one in tensors if not isinstance(one, Second)]
    if second and name not in COPIES and any(one.ndim for one in others):
        raise RuntimeError(f"{name} was given tensors on {DEVICE.type} and on cpu, shapes {[o.shape for o in others]}")
    target = kwargs.get("device")
    on_second = bool(second) if target is None else torch.device(target).type == DEVICE.type
    if name in COPIES:
        crosses = bool(second) != on_second if name == "aten::_to_copy" else len(second) == 1
        if crosses and not (kwargs.get("non_blocking") or args[2:] == (True,)):
            note("a copy")
    masks = [m for m in tree_leaves(args[1:]) if isinstance(m, Second) and m.dtype is torch.bool]
    if second and (name in READS or (name.startswith("aten::index") and masks)):
        note(name)
    inner = tree_map(inner_of, kwargs) | ({} if target is None else {"device": torch.device("cpu")})
    out = func(*tree_map(inner_of, args), **inner)
    if not on_second:
        return out.clone() if name == "aten::_to_copy" else out
    wrapped = tree_map(lambda one: Second(one) if isinstance(one, torch.Tensor) else one, out)
    return return_and_correct_aliasing(func, args, kwargs, wrapped) if second else wrapped


def draw_on_device():
    """What ``arml.lab.data.draws`` takes from torch, with generators that draw on the device."""

    def moved(draw):
        return lambda *args, **kwargs: draw(*args, **kwargs).to(DEVICE, non_blocking=True)

    return SimpleNamespace(**{name: moved(getattr(torch, name)) for name in ("rand", "randn", "randint")})
