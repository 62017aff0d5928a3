"""Shape bias: JiGen with shuffled images in the style of other sources; by default, style is pixel statistics."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from arml.lab.data.batches import DomainBatch
from arml.lab.learners.base import AugmentExamples
from arml.lab.learners.jigen import JiGen, JiGenSettings
from arml.lab.learners.joint_training import all_domains
from arml.lab.tasks.stylise import Stylise, draw_styles, pixel_adain, restyle


@dataclass(frozen=True)
class ShapeBiasSettings(JiGenSettings):
    """Those of JiGen, and the values in the authors' code."""

    stylised: float = 0.5
    """Probability of a shuffled image to be restyled."""
    by_tile: float = 0.5
    """Probability of a restyled image to have one style per tile instead of one for all tiles."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, value in (("stylised", self.stylised), ("by_tile", self.by_tile)):
            if not 0 <= value <= 1:
                raise ValueError(f"ShapeBias: `{name}` should be a probability, from 0 to 1. Got {value!r}.")


class ShapeBias(JiGen):
    """JiGen that cannot rely on colours and textures: shuffled images are restyled, some of them tile by tile.

    Asadi et al., *Towards Shape Biased Unsupervised Representation Learning for Domain Generalization*, 2019. Images in
    their own order are never restyled. The authors restyle by AdaIN on VGG features, before training, with style images
    that they do not publish. Here styles come from images of another source in the batch, never from the target. The
    default ``stylise`` is an approximation by pixel statistics, see :func:`~arml.lab.tasks.stylise.pixel_adain`.
    """

    needs_whole_batch = True
    settings: ShapeBiasSettings

    def __init__(
        self,
        settings: ShapeBiasSettings,
        sources: Sequence[str],
        augment: AugmentExamples,
        stylise: Stylise = pixel_adain,
    ) -> None:
        """``stylise`` gives images the style of others, such as AdaIN with an encoder and a decoder."""
        if len(sources) < 2:
            raise ValueError(f"ShapeBias takes styles from other sources and needs at least two. Got {list(sources)}.")
        super().__init__(settings, sources, augment)
        self.stylise = stylise

    def images(self, batch: DomainBatch, order: Tensor, generator: torch.Generator) -> Tensor:
        """The images of JiGen; some of those that will be shuffled have other styles."""
        x = super().images(batch, order, generator)
        chosen = (order > 0) & self._draw_choices(len(order), self.settings.stylised, generator).to(order.device)
        rows = chosen.nonzero().flatten()
        by_tile = self._draw_choices(len(rows), self.settings.by_tile, generator).to(order.device)
        styles = draw_styles(all_domains(batch), rows, generator)
        return restyle(x, rows, styles, by_tile, self.stylise)

    @staticmethod
    def _draw_choices(count: int, probability: float, generator: torch.Generator) -> Tensor:
        return torch.rand(count, generator=generator, device=generator.device) < probability
