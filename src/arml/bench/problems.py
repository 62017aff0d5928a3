"""Networks with any number of auxiliary tasks on random data: the cost of a step does not depend on the data."""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy

from arml.lab.models.mlp import mlp
from arml.lab.models.resnet import resnet18
from arml.lab.models.wrn import wrn

CLASSES = 2
TOKENS, WIDTH = 32, 128
"""The transformer's sequences: their length, and the size of each token."""


@dataclass(frozen=True)
class Kind:
    """A kind of network: how to make its trunk, and what the trunk takes."""

    name: str
    trunk: Callable[[], nn.Module]
    num_features: int
    example: tuple[int, ...]
    """Shape of one input."""
    batch: int
    """Inputs per batch by default."""
    quick_batch: int
    """The same for a quick look."""
    passes: Callable[[], AbstractContextManager[None]] = nullcontext
    """Entered around every pass through the trunk."""


class Transformer(nn.Module):
    """Two layers of attention over a short sequence; the features are the mean over the sequence."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=4, dim_feedforward=4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.last_layer = "layers.layers.1.linear2"

    def forward(self, x: Tensor) -> Tensor:
        """Sequences [B, T, W] -> features [B, W]."""
        features: Tensor = self.layers(x).mean(1)
        return features


MLP = Kind("MLP", partial(mlp, 100, 256, num_layers=3), 256, (100,), batch=64, quick_batch=64)
WRN = Kind("WRN-28-2", partial(wrn, 28, 2), 128, (3, 32, 32), batch=16, quick_batch=2)
RESNET = Kind("ResNet18", resnet18, 512, (3, 32, 32), batch=64, quick_batch=16)
TRANSFORMER = Kind(
    "transformer",
    Transformer,
    WIDTH,
    (TOKENS, WIDTH),
    batch=32,
    quick_batch=8,
    passes=partial(sdpa_kernel, SDPBackend.MATH),  # the only attention kernel that has a second derivative
)
FLASH = Kind("transformer, flash attention", Transformer, WIDTH, (TOKENS, WIDTH), batch=32, quick_batch=8)


class Problem:
    """A network with a main task and K auxiliary ones, each with its own head, and a batch to train it on."""

    def __init__(self, kind: Kind, num_aux: int, batch: int | None = None, device: str = "cpu") -> None:
        generator = torch.Generator().manual_seed(0)
        batch = batch or kind.batch
        self.kind, self.batch = kind, batch
        self.tasks = tuple(f"task {k}" for k in range(1, 1 + num_aux))
        self.trunk = kind.trunk().to(device)
        self.heads = nn.ModuleList(nn.Linear(kind.num_features, CLASSES) for _ in range(1 + num_aux)).to(device)
        self.inputs = torch.randn(batch, *kind.example, generator=generator).to(device)
        self.labels = torch.randint(CLASSES, (1 + num_aux, batch), generator=generator).to(device)
        parameters = [*self.trunk.parameters(), *self.heads.parameters()]
        self.optimizer = torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, fused=True)

    def num_parameters(self) -> int:
        """P, the number of shared parameters."""
        return sum(p.numel() for p in self.trunk.parameters())

    def last_layer(self) -> str:
        """The name of the trunk's last layer with weights."""
        return str(self.trunk.last_layer)

    def features(self) -> Tensor:
        """The input of every head, [B, F]."""
        with self.kind.passes():
            features: Tensor = self.trunk(self.inputs)
        return features

    def losses_of(self, features: Tensor) -> list[Tensor]:
        """1 + K scalars, main task first."""
        return [cross_entropy(head(features), y) for head, y in zip(self.heads, self.labels, strict=True)]

    def losses(self) -> tuple[Tensor, dict[str, Tensor]]:
        """The main loss, and the auxiliary losses by name: what a closure returns."""
        main, *aux = self.losses_of(self.features())
        return main, dict(zip(self.tasks, aux, strict=True))

    def losses_of_tasks(self, active: Collection[str]) -> tuple[Tensor, dict[str, Tensor]]:
        """The main loss, and the losses of the ``active`` tasks; those of the others are not computed."""
        features = self.features()
        names = [name for name in self.tasks if name in active]
        numbers = [0, *(1 + self.tasks.index(name) for name in names)]
        main, *aux = (cross_entropy(self.heads[i](features), self.labels[i]) for i in numbers)
        return main, dict(zip(names, aux, strict=True))

    def descend(self, loss: Tensor) -> None:
        """Run the backward pass and one step of the optimiser."""
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
