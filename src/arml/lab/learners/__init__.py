"""Learners: network, batch and step -> the main loss and auxiliary losses by name.

One paper, one file; each imports only from files above it.

- ``base``: the interface of all learners; ``ramp``, ``distances``: what several of them use
- ``supervised``, ``pi_model``, ``mean_teacher``, ``pseudo_label``, ``vat``, ``s4l``: unlabelled images
- ``joint_targets``, ``fork_merge``: several targets
- ``world_tasks``: the tasks of a world of known truth
- ``joint_training`` (target only, sources only, both), ``jigen``, ``shape_bias``, ``fada``, ``dsam``: several domains

Settings are frozen dataclasses. Their defaults are those of the papers, with the learning rate each was tuned for.
"""

from arml.lab.data.batches import Batch
from arml.lab.learners.base import Learner
from arml.lab.learners.mean_teacher import MeanTeacher, MeanTeacherSettings
from arml.lab.learners.pi_model import PiModel, PiModelSettings
from arml.lab.learners.pseudo_label import PseudoLabel, PseudoLabelSettings
from arml.lab.learners.s4l import S4L, S4LSettings
from arml.lab.learners.supervised import Supervised, SupervisedSettings
from arml.lab.learners.vat import VAT, VATSettings

__all__ = [
    "S4L",
    "VAT",
    "Batch",
    "Learner",
    "MeanTeacher",
    "MeanTeacherSettings",
    "PiModel",
    "PiModelSettings",
    "PseudoLabel",
    "PseudoLabelSettings",
    "S4LSettings",
    "Supervised",
    "SupervisedSettings",
    "VATSettings",
]
