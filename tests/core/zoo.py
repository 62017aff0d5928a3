"""Small named networks that an engine has to cope with, all in float64."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

NUM_AUX = 4


@dataclass
class Case:
    model: nn.Module
    losses: Callable[[], Tensor]
    """A fresh forward pass: [1 + K] losses with graph."""
    shared: nn.Module | Iterable[Tensor]

    def parameters(self) -> list[Tensor]:
        return list(self.shared.parameters()) if isinstance(self.shared, nn.Module) else list(self.shared)

    def trainable(self) -> list[Tensor]:
        return [p for p in dict.fromkeys(self.parameters()) if p.requires_grad]


def _case(trunk: nn.Module, x: Tensor, width: int, num_aux: int = NUM_AUX) -> Case:
    heads = nn.ModuleList(nn.Linear(width, 1) for _ in range(1 + num_aux))
    model = nn.ModuleDict({"trunk": trunk, "heads": heads}).double()
    targets = torch.randn(1 + num_aux, len(x), 1, dtype=torch.float64)

    def losses() -> Tensor:
        features = trunk(x)
        return torch.stack([F.mse_loss(head(features), y) for head, y in zip(heads, targets, strict=True)])

    return Case(model, losses, trunk)


def _x(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def plain() -> Case:
    return _case(nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4)), _x(7, 3), 4)


def one_auxiliary_task() -> Case:
    return _case(nn.Sequential(nn.Linear(3, 5), nn.Tanh()), _x(7, 3), 5, num_aux=1)


def frozen_first_layer() -> Case:
    case = plain()
    case.model["trunk"][0].requires_grad_(False)
    return case


def unused_parameter() -> Case:
    case = plain()
    case.model["trunk"].register_parameter("spare", nn.Parameter(_x(2)))
    return case


def loss_without_the_trunk() -> Case:
    """The last task never touches the shared parameters."""
    case, own = plain(), nn.Parameter(_x(3))
    inner = case.losses
    case.losses = lambda: torch.cat([inner()[:-1], own.square().sum()[None]])
    return case


def tied_weights() -> Case:
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    return _case(nn.Sequential(first, nn.Tanh(), second), _x(6, 4), 4)


def tasks_on_different_batches() -> Case:
    case = plain()
    trunk, heads = case.model["trunk"], case.model["heads"]
    batches = [_x(3 + i, 3) for i in range(1 + NUM_AUX)]
    case.losses = lambda: torch.stack([h(trunk(x)).square().mean() for h, x in zip(heads, batches, strict=True)])
    return case


def missing_tasks() -> Case:
    """Tasks 1 and 3 are not in the batch: a constant 0 stands for them."""
    case = plain()
    inner = case.losses
    zero = torch.zeros((), dtype=torch.float64)
    case.losses = lambda: torch.stack([zero if i in (1, 3) else loss for i, loss in enumerate(inner())])
    return case


def batch_norm() -> Case:
    return _case(nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 4)), _x(8, 3), 4)


def dropout() -> Case:
    return _case(nn.Sequential(nn.Linear(3, 20), nn.Dropout(0.5), nn.Tanh(), nn.Linear(20, 4)), _x(8, 3), 4)


def convolutions() -> Case:
    trunk = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, bias=False),
        nn.BatchNorm2d(4),
        nn.LeakyReLU(0.1, inplace=True),
        nn.Conv2d(4, 6, 3, stride=2),
        nn.GroupNorm(2, 6),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    return _case(trunk, _x(5, 2, 8, 8), 6)


def parameters_only() -> Case:
    """The shared part is known as tensors, not as a module."""
    case = plain()
    case.shared = list(case.model["trunk"].parameters())
    return case


def mixed_precision_of_parameters() -> Case:
    """A float32 layer between float64 ones."""

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 5), nn.Linear(5, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.second(self.first(x).tanh().float()).double()

    case = _case(Mixed(), _x(7, 3), 4)
    case.model["trunk"].second.float()
    return case


def checkpointed() -> Case:
    """Activations are recomputed in the backward pass."""

    class Checkpointed(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(super().forward, x, use_reentrant=False)

    return _case(Checkpointed(nn.Linear(3, 5), nn.Tanh(), nn.Dropout(0.5), nn.Linear(5, 4)), _x(7, 3), 4)


CASES = [
    plain,
    one_auxiliary_task,
    frozen_first_layer,
    unused_parameter,
    loss_without_the_trunk,
    tied_weights,
    tasks_on_different_batches,
    missing_tasks,
    batch_norm,
    dropout,
    convolutions,
    parameters_only,
    mixed_precision_of_parameters,
    checkpointed,
]


class Opaque(torch.autograd.Function):
    """An operation whose derivative autograd can use but not see into."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.tanh()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        return grad * (1 - ctx.saved_tensors[0].tanh() ** 2)
