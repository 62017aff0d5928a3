"""Modules that combine the outputs of all blocks of a trunk, one per source domain."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from arml.lab.data.draws import draw_uniform
from arml.lab.models.network import Network, Trunk, keep_statistics, promote_to_float32
from arml.lab.models.pixelwise import Pixelwise, RowConv
from arml.lab.models.resnet import block_outputs


class AggregationModule(nn.Module):
    """Joins block after block to a running map, then takes its mean over all positions, then class logits.

    A unit takes the running map, at first the output of the first block, and the output of the next block. It halves
    the map if the block halved its image, concatenates both, drops whole channels, and makes the result twice as wide
    as the block by a 1x1 convolution with ReLU. For ResNet18 the widths are those of the authors' code, 128, 256, 256,
    512, 512, 1024, 1024; other trunks follow the same rule: 128, 128 for ``small``.
    """

    def __init__(self, shapes: Sequence[tuple[int, bool]], num_classes: int, dropout: float = 0.5) -> None:
        """Convolutions keep PyTorch's initialisation, as in the authors' code.

        Args:
            shapes: For every block, its number of channels, and whether it halved the image.
            num_classes: Number of outputs.
            dropout: Share of channels dropped in training, in every unit and before the last layer.
        """
        super().__init__()
        if len(shapes) < 2:
            raise ValueError(f"There should be at least two blocks to aggregate. Got {len(shapes)}.")
        if not 0 <= dropout < 1:
            raise ValueError(f"`dropout` should be in [0, 1). Got {dropout!r}.")
        inputs = [shapes[0][0], *(2 * channels for channels, _ in shapes[1:])]
        self.units = nn.ModuleList(
            AggregationUnit(width, channels, halved, dropout)
            for width, (channels, halved) in zip(inputs[:-1], shapes[1:], strict=True)
        )
        self.num_features, self.dropout = inputs[-1], dropout
        self.output = nn.Linear(self.num_features, num_classes)

    def features(self, blocks: Sequence[Tensor], generator: torch.Generator | None = None) -> Tensor:
        """The means of the last map, [B, num_features]; channels are dropped only if a ``generator`` draws them."""
        running = blocks[0]
        for unit, block in zip(self.units, blocks[1:], strict=True):
            running = unit(running, block, generator)
        return drop_channels(running.mean(dim=(2, 3)), self.dropout, generator)

    def forward(self, blocks: Sequence[Tensor], generator: torch.Generator | None = None) -> Tensor:
        """Class logits, [B, classes]."""
        return promote_to_float32(self.output(self.features(blocks, generator)))


class AggregationUnit(nn.Module):
    """A running map and the output of a block -> the next running map."""

    def __init__(self, width: int, channels: int, halved: bool, dropout: float) -> None:
        """``width`` channels of the running map, ``channels`` of the block; the result has 2 x ``channels``."""
        super().__init__()
        self.dropout = dropout
        self.halve = nn.Sequential(nn.Conv2d(width, width, 1, stride=2), nn.ReLU()) if halved else nn.Identity()
        self.join = Pixelwise(RowConv(width + channels, 2 * channels), nn.ReLU())

    def forward(self, running: Tensor, block: Tensor, generator: torch.Generator | None) -> Tensor:
        """The next running map, with the height and width of the block's output."""
        both = torch.cat([self.halve(running), block], dim=1)
        joined: Tensor = self.join(drop_channels(both, self.dropout, generator))
        return joined


class AggregatedNetwork(Network):
    """A shared trunk whose heads are aggregation modules; its output is the mean of their logits."""

    trunk: Trunk

    def __init__(self, trunk: Trunk, modules: Mapping[str, AggregationModule]) -> None:
        """``modules`` holds the module of every source, by the name of the source."""
        nn.Module.__init__(self)  # skips Network.__init__, which makes linear heads
        if not modules:
            raise ValueError("There should be an aggregation module for at least one source. Got none.")
        self.trunk = trunk
        self.sources = dict(modules)
        """The aggregation module of every source."""
        # By number: a domain may have any name, but the name of a module must not contain a dot.
        self.heads = nn.ModuleDict({str(number): module for number, module in enumerate(modules.values())})

    def features(self, x: Tensor) -> Tensor:
        """The concatenated features of all modules, [B, F]."""
        blocks = block_outputs(self.trunk, x)
        return torch.cat([module.features(blocks) for module in self.sources.values()], dim=1)

    def head(self, name: str, features: Tensor) -> Tensor:
        """The logits of one source's module for ``features`` [B, F], or the mean of all for the name ``"class"``."""
        if name != "class" and name not in self.sources:
            raise ValueError(f"The network has no head {name!r}. Its heads are: class, {', '.join(self.sources)}.")
        parts = features.split([module.num_features for module in self.sources.values()], dim=1)
        logits = [
            promote_to_float32(module.output(part))
            for (source, module), part in zip(self.sources.items(), parts, strict=True)
            if name in ("class", source)
        ]
        return torch.stack(logits).mean(dim=0)

    def route(self, images: Mapping[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        """Class logits in training: one pass of the trunk over all images, then each source through its own module.

        Args:
            images: Images of every source, [B, C, H, W].
            generator: Draws the channels to drop.
        """
        blocks = block_outputs(self.trunk, torch.cat(list(images.values())))
        parts = zip(*(block.split([len(x) for x in images.values()]) for block in blocks), strict=True)
        return {name: self.sources[name](part, generator) for name, part in zip(images, parts, strict=True)}

    def leave_out(self, source: str) -> "AggregatedNetwork":
        """The network without the module of ``source``, which treats its images as those of an unseen domain."""
        others = {name: module for name, module in self.sources.items() if name != source}
        return AggregatedNetwork(self.trunk, others).train(self.training)


def aggregated_network(
    trunk: Trunk, num_classes: int, sources: Sequence[str], *, dropout: float = 0.5
) -> AggregatedNetwork:
    """A network with one aggregation module on ``trunk`` per source.

    >>> from arml.lab.models import small
    >>> network = aggregated_network(small(), 10, ["photo", "sketch"])
    >>> network(torch.zeros(2, 1, 8, 8)).shape, network.features(torch.zeros(2, 1, 8, 8)).shape
    (torch.Size([2, 10]), torch.Size([2, 256]))
    """
    shapes = block_shapes(trunk)
    return AggregatedNetwork(trunk, {source: AggregationModule(shapes, num_classes, dropout) for source in sources})


def block_shapes(trunk: Trunk) -> list[tuple[int, bool]]:
    """For every block of ``trunk``, its number of channels, and whether it halves the height of its images.

    >>> from arml.lab.models import small
    >>> block_shapes(small())
    [(32, False), (64, True), (64, True)]
    """
    kernel = next(weight for weight in trunk.parameters() if weight.ndim == 4)
    with torch.no_grad(), keep_statistics(trunk):
        outputs = block_outputs(trunk, kernel.new_zeros(1, kernel.shape[1], 64, 64))
    heights = [outputs[0].shape[2], *(output.shape[2] for output in outputs)]
    factors = [before // after for before, after in pairwise(heights)]
    if not set(factors) <= {1, 2}:
        raise ValueError(f"Blocks should keep or halve the height of images. Got heights {heights[1:]} for 64 pixels.")
    return [(output.shape[1], factor == 2) for output, factor in zip(outputs, factors, strict=True)]


def drop_channels(x: Tensor, share: float, generator: torch.Generator | None) -> Tensor:
    """Sets each channel of ``x`` [B, C, ...] to 0 with probability ``share`` and scales the others up.

    Drawn separately for every image; nothing is dropped without a ``generator``. Like PyTorch's dropout, which draws
    from the global state.
    """
    if generator is None:
        return x
    kept = draw_uniform(x.shape[:2], generator) >= share
    return x * kept.to(x)[(...,) + (None,) * (x.ndim - 2)] / (1 - share)
