"""How often a step goes through the trunk, forwards and backwards: a needless pass more is a failure here."""

from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook
from torch.utils._python_dispatch import TorchDispatchMode

from arml.lab.data.augment import Augment, crop, cutout, flip, noise, shift
from arml.lab.data.batches import AttributeBatch, DomainBatch
from arml.lab.data.targets import Target
from arml.lab.learners import (
    S4L,
    VAT,
    Batch,
    MeanTeacher,
    MeanTeacherSettings,
    PiModel,
    PiModelSettings,
    PseudoLabel,
    PseudoLabelSettings,
    S4LSettings,
    Supervised,
    SupervisedSettings,
    VATSettings,
)
from arml.lab.learners.dsam import DSAM, DSAMSettings
from arml.lab.learners.fada import FADA, FADASettings
from arml.lab.learners.jigen import JiGen, JiGenSettings
from arml.lab.learners.joint_targets import JointTargets, MainTarget
from arml.lab.learners.joint_training import Baseline, DomainSettings, JointTraining, TargetOnly
from arml.lab.learners.shape_bias import ShapeBias, ShapeBiasSettings
from arml.lab.models import small
from arml.lab.tasks.attributes import Attributes
from arml.lab.tasks.exemplar import distort
from arml.lab.tasks.jigsaw import draw_orders, grey_tiles, shuffle_tiles
from arml.lab.tasks.rotation import quarter_turns
from arml.lab.tasks.stylise import draw_styles, pixel_adain, restyle

AUGMENT = Augment(flip=True, shift=1, noise=0.1)
SOURCES = ("photo", "sketch")
FEATURES = 32
X, U = 3, 5
"""Labelled and unlabelled images, so that sizes tell which images are in a pass."""


@dataclass
class Passes:
    """Images in each pass of a step, in the order of the passes."""

    with_graph: list[int] = field(default_factory=list)
    without: list[int] = field(default_factory=list)
    """Of the network or of a teacher."""
    back_in_losses: list[int] = field(default_factory=list)
    """Passes that are run backwards while the losses are computed."""
    back: list[int] = field(default_factory=list)
    """Passes that are run backwards from the joint loss, smallest first."""
    heads: int = 0
    """Passes through linear heads of the network or of a teacher."""


def small_batch():
    return Batch(torch.randn(X, 1, 9, 9), torch.arange(X), torch.randn(U, 1, 9, 9))


def domain_batch():
    """Two images of the target, three and four of the sources."""
    images = [(torch.randn(size, 1, 9, 9), torch.arange(size) % 2) for size in (2, 3, 4)]
    return DomainBatch(*images[0], dict(zip(SOURCES, images[1:], strict=True)))


def attribute_batch():
    labels = torch.arange(5.0)
    return AttributeBatch(torch.randn(X, 1, 9, 9), labels[:X], torch.randn(U, 1, 9, 9), labels[:, None])


def attributes(name):
    return Attributes({name: Target(torch.tensor([0.0, 1.0]), classes=tuple("0123456789"))}, rows=torch.arange(2))


@contextmanager
def counted(passes):
    """Adds to ``passes`` whatever starts at the one convolution that takes grey images, of any copy of the network."""

    def see(module, args, output):
        if isinstance(module, nn.Linear) and module.in_features == FEATURES:
            passes.heads += 1
        if not isinstance(module, nn.Conv2d) or module.in_channels != 1:
            return
        images = len(args[0])
        (passes.with_graph if output.requires_grad else passes.without).append(images)
        if output.requires_grad:
            output.register_hook(lambda _: passes.back.append(images))

    handle = register_module_forward_hook(see)
    try:
        yield
    finally:
        handle.remove()


def passes_of(learner, batch):
    """One whole step of training."""
    network, found = learner.network(small(num_features=FEATURES), 10), Passes()
    learner.start(network)
    with counted(found):
        main, aux = learner.losses(network, batch, 20, torch.Generator().manual_seed(0))
        found.back_in_losses, found.back = found.back, []
        (main + sum(aux.values())).backward()
        learner.after_step(network)
    found.back.sort()
    return found


SEMI_SUPERVISED = {
    # Labels only: unlabelled images are not even looked at.
    "supervised": (lambda: Supervised(SupervisedSettings(), AUGMENT), Passes([X], [], [], [X], 1)),
    # The main pass gives p1; p2 is another draw of augmentation and without gradient by definition.
    "pi_model": (lambda: PiModel(PiModelSettings(), AUGMENT), Passes([X + U], [U], [], [X + U], 2)),
    # The main pass gives p; p' has other parameters.
    "mean_teacher": (lambda: MeanTeacher(MeanTeacherSettings(), AUGMENT), Passes([X + U], [U], [], [X + U], 2)),
    # The main pass; p(u) in BatchNorm's batch of the passes it is compared with; u + d, back to the image; u + r.
    "vat": (lambda: VAT(VATSettings(), AUGMENT), Passes([X + U, U, U], [U], [U], [U, X + U], 4)),
    # The entropy is that of the main pass.
    "vat_entmin": (lambda: VAT(VATSettings(entropy=0.06), AUGMENT), Passes([X + U, U, U], [U], [U], [U, X + U], 4)),
    # The main pass gives the labels and what is compared with them.
    "pseudo_label": (lambda: PseudoLabel(PseudoLabelSettings(), AUGMENT), Passes([X + U], [], [], [X + U], 1)),
    # The main pass; four turns; distorted images, and the teacher's view of them, for which no head is asked.
    "s4l": (
        lambda: S4L(S4LSettings(), AUGMENT),
        Passes([X + U, 4 * (X + U), X + U], [X + U], [], [X + U, X + U, 4 * (X + U)], 2),
    ),
    "s4l_rotation": (
        lambda: S4L(S4LSettings(tasks=("rotation",)), AUGMENT),
        Passes([X + U, 4 * (X + U)], [], [], [X + U, 4 * (X + U)], 2),
    ),
}


@pytest.mark.parametrize(("make", "expected"), SEMI_SUPERVISED.values(), ids=SEMI_SUPERVISED)
def test_every_pass_of_a_semi_supervised_step_is_known(make, expected):
    assert passes_of(make(), small_batch()) == expected


JIGEN = JiGenSettings(bias=0.5, num_permutations=3)
ONE_PASS = {
    "target_only": (lambda: TargetOnly(DomainSettings(), AUGMENT), domain_batch, 2),
    "joint": (lambda: JointTraining(DomainSettings(), SOURCES, AUGMENT), domain_batch, 9),
    "fada": (lambda: FADA(FADASettings(), SOURCES, AUGMENT, steps=4), domain_batch, 9),
    "dsam": (lambda: DSAM(DSAMSettings(), SOURCES, AUGMENT), domain_batch, 7),
    "main_target": (lambda: MainTarget(attributes("old"), AUGMENT), attribute_batch, X),
    "joint_targets": (lambda: JointTargets(attributes("old"), attributes("smiles"), AUGMENT), attribute_batch, X + U),
}


@pytest.mark.parametrize(("make", "batch", "images"), ONE_PASS.values(), ids=ONE_PASS)
def test_all_other_learners_need_one_pass(make, batch, images):
    found = passes_of(make(), batch())
    assert found == Passes([images], [], [], [images], found.heads)


STEERED = {
    "baseline": lambda: Baseline(DomainSettings(), SOURCES, AUGMENT),
    "jigen": lambda: JiGen(JIGEN, SOURCES, AUGMENT),
    "shape_bias": lambda: ShapeBias(ShapeBiasSettings(bias=0.5, num_permutations=3), SOURCES, AUGMENT),
}


@pytest.mark.parametrize("make", STEERED.values(), ids=STEERED)
def test_a_target_that_only_steers_has_a_pass_of_its_own(make):
    """One pass over the sources' images, and one over the target's, if there are any."""
    batch = domain_batch()
    found = passes_of(make(), batch)
    assert found == Passes([7, 2], [], [], [2, 7], found.heads)
    learner, alone = make(), Passes()
    network = learner.network(small(num_features=FEATURES), 10)
    with counted(alone):
        learner.losses(network, batch._replace(x=batch.x[:0], y=batch.y[:0]), 20, torch.Generator().manual_seed(0))
    assert alone.with_graph == [7]


class Operations(TorchDispatchMode):
    """Counts what torch is asked to do."""

    def __init__(self):
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        del types
        self.number += 1
        return func(*args, **(kwargs or {}))


def restyled(x, generator):
    """Every other image tile by tile, all in styles of the other of two sources."""
    rows = torch.arange(len(x))
    styles = draw_styles(1 + rows % 2, rows, generator)
    return restyle(x, rows, styles, rows % 4 < 2, pixel_adain)


def shuffled(x, generator):
    orders = draw_orders(len(x), 3, 0.5, generator)
    return shuffle_tiles(x, torch.stack([torch.arange(9).roll(turn) for turn in range(3)])[orders])


CHANGES = {
    "flip": flip,
    "shift": lambda x, generator: shift(x, 2, generator),
    "noise": lambda x, generator: noise(x, 0.1, generator),
    "cutout": lambda x, generator: cutout(x, 4, generator),
    "crop": lambda x, generator: crop(x, 0.8, generator),
    "all": Augment(flip=True, shift=2, noise=0.1, crop=0.8),
    "exemplar": distort,
    "rotation": lambda x, _: quarter_turns(x),
    "jigsaw": shuffled,
    "grey tiles": lambda x, generator: grey_tiles(x, 0.5, generator),
    "stylise": restyled,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_images_are_changed_together_not_one_by_one(change):
    """As many operations for 32 images as for 4."""

    def operations(batch):
        with Operations() as counted:
            change(torch.randn(batch, 3, 9, 9), torch.Generator().manual_seed(0))
        return counted.number

    assert operations(32) == operations(4)
