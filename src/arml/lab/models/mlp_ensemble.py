"""Several multilayer perceptrons in one trunk, trained side by side and averaged."""

import torch
from torch import Tensor, nn

from arml.lab.models.network import Trunk


def mlp_ensemble(
    num_inputs: int, num_features: int, num_members: int, *, num_layers: int = 2, dropout: float = 0.0
) -> Trunk:
    """The trunk of M perceptrons as in :func:`arml.lab.models.mlp.mlp`, each with its own parameters.

    In training, row r of a batch belongs to member r mod M: repeat every row M times, as :func:`repeat_rows` does, and
    each member sees all rows. A loss that is a mean over rows is then the mean of the losses of all members. In
    evaluation, the features of a row are the mean over all members. Heads are linear and common to all members, so
    the outputs are then the mean of their outputs.

    >>> trunk = mlp_ensemble(103, 64, 8)
    >>> trunk(repeat_rows(torch.zeros(5, 103), 8)).shape, trunk.eval()(torch.zeros(5, 103)).shape
    (torch.Size([40, 64]), torch.Size([5, 64]))

    Args:
        num_inputs: Columns of the table.
        num_features: Features of every layer of a member, and so of the trunk.
        num_members: M.
        num_layers: Layers of a member.
        dropout: Share of the features set to 0 in training, after every layer.
    """
    layers: dict[str, nn.Module] = {"spread": Spread(num_members)}
    for number in range(1, num_layers + 1):
        layers[f"linear{number}"] = MemberLinear(num_members, num_inputs if number == 1 else num_features, num_features)
        layers[f"activation{number}"] = nn.ReLU()
        layers[f"dropout{number}"] = nn.Dropout(dropout)
    layers["gather"] = Gather()
    return Trunk(layers, num_features, last_layer=f"linear{num_layers}")


def repeat_rows(x: Tensor, times: int) -> Tensor:
    """Every row ``times`` times in succession, [B, ...] -> [B times, ...]."""
    return x.repeat_interleave(times, dim=0)


class Spread(nn.Module):
    """Rows -> the rows of every member, [M, B, F]: its own ones in training, all rows in evaluation."""

    def __init__(self, num_members: int) -> None:
        super().__init__()
        self.num_members = num_members

    def forward(self, x: Tensor) -> Tensor:
        """[B M, F] in training, [B, F] in evaluation."""
        if not self.training:
            return x.expand(self.num_members, *x.shape)
        if len(x) % self.num_members:
            raise ValueError(
                f"A batch of {self.num_members} networks should hold every row {self.num_members} times. Got {len(x)} "
                "rows. Repeat them with `repeat_rows`."
            )
        return x.view(-1, self.num_members, x.shape[1]).transpose(0, 1)


class Gather(nn.Module):
    """Features of every member [M, B, F] -> features of rows: in the order of the batch in training, else the mean."""

    def forward(self, features: Tensor) -> Tensor:
        """[B M, F] in training, [B, F] in evaluation."""
        return features.transpose(0, 1).flatten(0, 1) if self.training else features.mean(dim=0)


class MemberLinear(nn.Module):
    """A linear layer per member, [M, B, inputs] -> [M, B, outputs], with the initialisation of ``mlp``."""

    def __init__(self, num_members: int, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(num_members, inputs, outputs) * (2 / inputs) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(num_members, 1, outputs))

    def forward(self, x: Tensor) -> Tensor:
        """W_m x + b_m for every member m."""
        return torch.baddbmm(self.bias, x, self.weight)
