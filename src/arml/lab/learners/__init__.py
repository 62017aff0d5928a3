"""Learners: network, batch and step -> the main loss and auxiliary losses by name.

One paper, one file. Unlabelled images: ``supervised``, ``pi_model``, ``mean_teacher``, ``vat``, ``pseudo_label``,
``s4l``. Several targets: ``attributes``. Several domains: ``domains`` (target only, sources only, both), ``jigen``,
``shape_bias``, ``fada``, ``dsam``. Settings are frozen dataclasses whose defaults are those of the papers, with the
learning rate each was tuned for.
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
