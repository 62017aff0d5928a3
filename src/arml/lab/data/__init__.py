"""Examples to learn from, from files to batches.

- ``splits``: which training images are labelled, unlabelled, kept for validation
- ``base``: what a data set is in memory; the error for files that cannot become one
- ``digits``, ``mnist5k``: real images that ship inside packages; ``cifar10``, ``svhn``: read from a data folder
- ``preprocess``: pixels -> numbers a network can take
- ``augment``: random changes, drawn for every image by itself
- ``targets``, ``few_labels``: several questions about an example, few labels for one of them; ``yeast``, ``celeba``,
  ``table``: data of that kind
- ``domains``: images of the same classes from several domains; ``pacs``, ``digit_domains``: such sets
- ``cache``: image files decoded once
- ``batches``: endless shuffled batches, resumed exactly
- ``fetch``: what is there, getting what is not, checking what is
"""

from arml.lab.data.augment import Augment
from arml.lab.data.base import DataError, Dataset, Images
from arml.lab.data.batches import Sampler
from arml.lab.data.preprocess import GcnZca, Scale
from arml.lab.data.splits import PAPER_SIZES, Split, split, validation_size

__all__ = [
    "PAPER_SIZES",
    "Augment",
    "DataError",
    "Dataset",
    "GcnZca",
    "Images",
    "Sampler",
    "Scale",
    "Split",
    "split",
    "validation_size",
]
