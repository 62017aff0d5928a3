"""Examples to learn from: files in, batches out. Each file imports only from files above it.

- ``base``: a data set in memory; the error for files that cannot become one
- ``splits``: which training images are labelled, unlabelled or held out
- ``targets``, ``target_splits``: several questions about an example, with few labels for one of them
- ``preprocess``: pixels -> numbers that a network takes
- ``augment``: random changes, drawn separately for every image
- ``batches``: endless shuffled batches that resume exactly
- ``cache``: images, decoded or preprocessed once
- ``domain_set``: images of the same classes from several domains
- ``digits``, ``mnist5k``: images inside packages; ``cifar10`` (through ``_pickles``), ``svhn``: images in a data folder
- ``table``, ``yeast``, ``celeba``: examples with several targets; ``docstrings``: a table of texts inside a package
- ``digit_domains``, ``pacs``, ``pacs_misleading``: sets of domains
- ``fetch`` (through ``_registry``, ``_download``): lists, downloads and checks data sets
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
