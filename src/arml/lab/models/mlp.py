"""A multilayer perceptron, for rows of a table."""

from torch import nn

from arml.lab.models.network import Trunk


def mlp(num_inputs: int, num_features: int = 64, *, num_layers: int = 2, dropout: float = 0.0) -> Trunk:
    """The trunk of a multilayer perceptron: rows [B, num_inputs] -> features [B, num_features].

    Every layer is x -> dropout(relu(W x + b)). W starts from He's normal distribution, with variance 2 / inputs, and b
    from 0. If every column has mean 0 and variance 1, the mean square of a row then stays 1 through any number of
    layers; PyTorch's own initialisation would divide it by about 6 in each.

    Nothing is normalised inside: columns are standardised once, before training. The features of a row then do not
    depend on the other rows of its batch, which may be few.

    Args:
        num_inputs: Columns of the table.
        num_features: Features of every layer, and so of the trunk.
        num_layers: Number of layers, at least 1.
        dropout: Share of the features set to 0 in training, after every layer.

    >>> import torch
    >>> mlp(103)(torch.zeros(5, 103)).shape
    torch.Size([5, 64])
    """
    _check(num_inputs, num_features, num_layers, dropout)
    layers: dict[str, nn.Module] = {}
    for number in range(1, num_layers + 1):
        layers[f"linear{number}"] = _linear(num_inputs if number == 1 else num_features, num_features)
        layers[f"activation{number}"] = nn.ReLU()
        layers[f"dropout{number}"] = nn.Dropout(dropout)
    return Trunk(layers, num_features, last_layer=f"linear{num_layers}")


def _linear(inputs: int, outputs: int) -> nn.Linear:
    layer = nn.Linear(inputs, outputs)
    nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    nn.init.zeros_(layer.bias)
    return layer


def _check(num_inputs: int, num_features: int, num_layers: int, dropout: float) -> None:
    counts = {"num_inputs": num_inputs, "num_features": num_features, "num_layers": num_layers}
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"`{name}` should be at least 1. Got {count}.")
    if not 0 <= dropout < 1:
        raise ValueError(f"`dropout` should be at least 0 and less than 1. Got {dropout}.")
