"""Tasks: network and images -> one scalar loss. Each file imports only from files above it.

- ``classify``: the main task
- ``rotation``, ``exemplar``: self-supervised tasks
- ``attributes``: many targets at once
- ``jigsaw``: the order of an image's tiles; ``stylise``: images in the style of other domains
- ``pairs``: pairs of images from sources and target

Every task but the main one leaves BatchNorm's running statistics alone.
"""

from arml.lab.tasks.attributes import Attributes
from arml.lab.tasks.classify import classify, classify_with_unlabelled
from arml.lab.tasks.exemplar import distort, exemplar
from arml.lab.tasks.jigsaw import jigsaw, permutation_set, shuffle_tiles
from arml.lab.tasks.pairs import confusion, discrimination, pair_groups
from arml.lab.tasks.rotation import quarter_turns, rotation
from arml.lab.tasks.stylise import pixel_adain, restyle

__all__ = [
    "Attributes",
    "classify",
    "classify_with_unlabelled",
    "confusion",
    "discrimination",
    "distort",
    "exemplar",
    "jigsaw",
    "pair_groups",
    "permutation_set",
    "pixel_adain",
    "quarter_turns",
    "restyle",
    "rotation",
    "shuffle_tiles",
]
