"""Every learner's losses on a case worked by hand: two pixels are the logits, and (ln 3, 0) means p = (3/4, 1/4)."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn, tensor
from torch.testing import assert_close

from arml import AdaLoss, Signals
from arml.lab.data.augment import Augment
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
from arml.lab.learners.ramp import ramp_up
from arml.lab.models import Network

LN3 = math.log(3)
STILL = Augment(flip=False, shift=0, noise=0.0)
LABELLED = -math.log(3 / 4)
"""The main loss of ``batch``."""


def images(*logits):
    """Images of one row and two pixels, which are the logits."""
    return tensor(logits, dtype=torch.float64).reshape(-1, 1, 1, 2)


def reader(heads=None):
    """A network whose logits are the pixels."""
    network = Network(nn.Flatten(), 2, {"class": 2, **(heads or {})}).double()
    network.heads["class"].weight.data = torch.eye(2, dtype=torch.float64)
    return network


def batch(*unlabelled):
    return Batch(images([LN3, 0.0]), tensor([0]), images(*unlabelled))


def losses_of(learner, network, batch, step=10**6):
    learner.start(network)
    return learner.losses(network, batch, step, torch.Generator().manual_seed(0))


def number(value):
    return tensor(value, dtype=torch.float64)


class Views:
    """In place of a random augmentation: the images it will return, one after the other."""

    def __init__(self, *views):
        self.views = list(views)

    def __call__(self, x, generator):
        del x, generator
        return self.views.pop(0)


def test_supervised():
    learner = Supervised(SupervisedSettings(), STILL)
    main, aux = losses_of(learner, reader(), batch([5.0, 0.0]))
    assert_close(main, number(LABELLED))
    assert aux == {}


def test_pi_model():
    """p1 = (3/4, 1/4) and p2 = (1/2, 1/2): the mean over classes of the squared difference is 1/16."""
    views = Views(images([LN3, 0.0]), images([LN3, 0.0]), images([0.0, 0.0]))
    main, aux = losses_of(PiModel(PiModelSettings(), views), reader(), batch([9.0, 9.0]))
    assert_close(main, number(LABELLED))
    assert_close(aux, {"consistency": number(20 / 16)})


def test_the_second_pass_of_the_pi_model_is_a_constant():
    """dL/dlogits = +-(p1 - p2) 2 x 3/16, where 3/16 is the slope of softmax at p1; times the pixels of view 1."""
    network = reader()
    views = Views(images([LN3, 0.0]), images([LN3, 0.0]), images([0.0, 1.0]))
    settings = PiModelSettings(max_weight=1.0, ramp_steps=0)
    _, aux = losses_of(PiModel(settings, views), network, batch([9.0, 9.0]))
    aux["consistency"].backward()
    p2 = math.exp(0) / (1 + math.e)
    slope = (3 / 4 - p2) * 2 * 3 / 16  # (p - q) for class 0, its negative for class 1
    assert_close(network.heads["class"].weight.grad, number([[slope * LN3, 0], [-slope * LN3, 0]]))


def test_mean_teacher():
    """The teacher knows nothing, p' = (1/2, 1/2)."""
    learner, network = MeanTeacher(MeanTeacherSettings(), STILL), reader()
    learner.start(network)
    learner.teacher.network.heads["class"].weight.data.zero_()
    generator = torch.Generator().manual_seed(0)
    main, aux = learner.losses(network, batch([LN3, 0.0], [0.0, 0.0]), 10**6, generator)
    assert_close(main, number(LABELLED))
    assert_close(aux, {"consistency": number(8 * (1 / 16 + 0) / 2)})
    learner.after_step(network)  # the first update copies
    _, aux = learner.losses(network, batch([LN3, 0.0], [0.0, 0.0]), 10**6, generator)
    assert_close(aux, {"consistency": number(0.0)})


def test_network_and_teacher_each_have_their_own_view():
    views = Views(images([LN3, 0.0]), images([LN3, 0.0]), images([0.0, 0.0]))
    _, aux = losses_of(MeanTeacher(MeanTeacherSettings(), views), reader(), batch([9.0, 9.0]))
    assert_close(aux, {"consistency": number(8 / 16)})


def test_pseudo_label():
    """Sure of 99 %, 75 % and, for the other class, 99 %: only the first and the last count."""
    ln99 = math.log(99)
    main, aux = losses_of(
        PseudoLabel(PseudoLabelSettings(), STILL), reader(), batch([ln99, 0.0], [LN3, 0.0], [0.0, ln99])
    )
    assert_close(main, number(LABELLED))
    assert_close(aux, {"pseudo_label": number(-2 * math.log(0.99) / 3)})


def test_pseudo_labels_follow_the_threshold():
    settings = PseudoLabelSettings(threshold=0.7, max_weight=2.0)
    _, aux = losses_of(PseudoLabel(settings, STILL), reader(), batch([LN3, 0.0], [0.0, 0.0]))
    assert_close(aux, {"pseudo_label": number(2 * -math.log(3 / 4) / 2)})


@pytest.mark.parametrize(
    ("divergence", "expected"),
    [("oliver", 3 / 4 * math.log(3 / 2) + 1 / 4 * math.log(1 / 2)), ("miyato", math.log(4 / 3) / 2)],
)
def test_vat(divergence, expected):
    """From (0, 0) predictions change along +-(1, -1); r of length ln 3 / sqrt 2 gives p = (3/4, 1/4) or (1/4, 3/4)."""
    settings = VATSettings(epsilon=LN3 / 2**0.5, divergence=divergence, entropy=0.06)
    main, aux = losses_of(VAT(settings, STILL), reader(), batch([0.0, 0.0]))
    assert_close(main, number(LABELLED))
    assert_close(aux, {"adversarial": number(0.3 * expected), "entropy": number(0.06 * math.log(2))})


def test_the_entropy_is_that_of_clean_images_and_not_ramped():
    settings = VATSettings(entropy=0.5)
    _, aux = losses_of(VAT(settings, STILL), reader(), batch([LN3, 0.0]), step=0)
    clean = 3 / 4 * math.log(4 / 3) + 1 / 4 * math.log(4)
    assert_close(aux["entropy"], number(0.5 * clean))
    assert VAT(VATSettings(), STILL).tasks == ("adversarial",)


def test_s4l():
    """One bright labelled image, three dark unlabelled ones, of 2 x 2 pixels, which look the same from all sides.

    The bright one has odds 3 : 1 : 1 : 1 for the angles, the dark ones tell nothing. A box covers one of four pixels:
    the bright one then has cosine 3 / (2 sqrt 3) with its view, the dark ones have no direction and cosine 0.
    """
    network = Network(nn.Flatten(), 4, {"class": 2, "rotation": 4}).double()
    network.heads["class"].weight.data = number([[LN3, 0, 0, 0], [0, 0, 0, 0]])
    network.heads["rotation"].weight.data = number([[LN3 / 4] * 4, *3 * [[0, 0, 0, 0]]])
    bright, dark = torch.ones(1, 1, 2, 2, dtype=torch.float64), torch.zeros(3, 1, 2, 2, dtype=torch.float64)
    learner = S4L(S4LSettings(noise=0.0), STILL)
    main, aux = losses_of(learner, network, Batch(bright, tensor([0]), dark))
    assert_close(main, number(LABELLED))
    assert_close(aux["rotation"], number((math.log(6) - LN3 / 4 + 3 * math.log(4)) / 4))
    assert_close(aux["exemplar"], number((1 - 3**0.5 / 2 + 3) / 4))


def test_the_student_s_view_of_the_paper_and_of_the_release():
    """The paper flips, adds noise and covers; in the release the main task's augmentation follows, as in every pass."""

    def student_views(settings, augment):
        learner, seen = S4L(settings, augment), []
        network = Network(nn.Flatten(), 4, {"class": 2, **learner.heads}).double()
        network.trunk.register_forward_hook(lambda _, inputs, features: seen.append(inputs[0]))
        bright = torch.ones(4, 1, 2, 2, dtype=torch.float64)
        losses_of(learner, network, Batch(bright, tensor([0, 1, 0, 1]), bright))
        return seen[-1]

    def times_ten(x, generator):
        del generator
        return 10 * x

    exemplar = S4LSettings(tasks=("exemplar",), noise=0.0)
    paper = student_views(exemplar, times_ten)
    assert set(paper.unique().tolist()) == {0.0, 1.0}
    released = student_views(replace(exemplar, augment_student=True), times_ten)
    assert_close(released, 10 * paper, rtol=0, atol=0)


def test_the_offset_of_the_exemplar_loss_changes_no_gradient_and_bounds_the_weight_of_adaloss():
    """AdaLoss divides by the loss: by 1 - cos, near 0 for good features, or in the release by 2 - cos, at least 1."""
    bright = torch.ones(2, 1, 2, 2, dtype=torch.float64)

    def exemplar_of(settings):
        network = Network(nn.Sequential(nn.Flatten(), nn.Linear(4, 4)), 4, {"class": 2}).double()
        torch.nn.init.eye_(network.trunk[1].weight)
        _, aux = losses_of(S4L(settings, STILL), network, Batch(bright, tensor([0, 1]), bright))
        (slope,) = torch.autograd.grad(aux["exemplar"], network.trunk[1].weight, retain_graph=True)
        signals = Signals(torch.stack([number(1.0), aux["exemplar"].detach()]))
        weights, _ = AdaLoss().update(AdaLoss().init(signals.losses), signals)
        return aux["exemplar"].detach(), slope, float(weights[1])

    torch.manual_seed(0)
    ours, slope, weight = exemplar_of(S4LSettings(tasks=("exemplar",), noise=0.0))
    torch.manual_seed(0)
    released, same_slope, bounded = exemplar_of(S4LSettings(tasks=("exemplar",), noise=0.0, exemplar_offset=2.0))
    assert_close(released, ours + 1)
    assert_close(same_slope, slope)
    assert weight == pytest.approx(1 / float(ours), rel=1e-4)
    assert bounded == pytest.approx(1 / (1 + float(ours)), rel=1e-4)
    assert bounded <= 1 < weight
    with pytest.raises(ValueError, match=r"`exemplar_offset` should be at least 1.*Got 0"):
        S4LSettings(exemplar_offset=0.0)


@pytest.mark.parametrize("tasks", [("rotation",), ("exemplar",)])
def test_s4l_with_one_task(tasks):
    learner = S4L(S4LSettings(tasks=tasks), STILL)
    network = Network(nn.Flatten(), 4, {"class": 2, **learner.heads}).double()
    bright = torch.ones(2, 1, 2, 2, dtype=torch.float64)
    _, aux = losses_of(learner, network, Batch(bright, tensor([0, 1]), bright))
    learner.after_step(network)
    assert tuple(aux) == learner.tasks == tasks


def test_losses_are_ramped():
    assert ramp_up(0, 1.0, 100) == pytest.approx(math.exp(-5))
    assert ramp_up(50, 2.0, 100) == pytest.approx(2 * math.exp(-5 / 4))
    assert ramp_up(100, 3.0, 100) == ramp_up(10**9, 3.0, 100) == ramp_up(0, 3.0, 0) == 3.0
    for learner in (
        VAT(VATSettings(ramp_steps=100, epsilon=1.0), STILL),
        PseudoLabel(PseudoLabelSettings(ramp_steps=100, threshold=0.7), STILL),
    ):
        early, late = (losses_of(learner, reader(), batch([LN3, 0.0]), step)[1] for step in (50, 100))
        (name,) = learner.tasks
        assert_close(early[name], late[name] * math.exp(-5 / 4))


def test_defaults_are_those_of_the_recipes():
    """Oliver et al.'s maximal weights and step sizes; S4L has those of ARML's paper."""
    settings = {
        "supervised": SupervisedSettings(),
        "pi_model": PiModelSettings(),
        "mean_teacher": MeanTeacherSettings(),
        "vat": VATSettings(),
        "pseudo_label": PseudoLabelSettings(),
        "s4l": S4LSettings(),
    }
    table = {name: (getattr(s, "max_weight", None), s.lr) for name, s in settings.items()}
    assert table == {
        "supervised": (None, 0.003),
        "pi_model": (20, 0.0003),
        "mean_teacher": (8, 0.0004),
        "vat": (0.3, 0.003),
        "pseudo_label": (1, 0.0003),
        "s4l": (None, 0.005),
    }


def test_wrong_settings_are_refused_in_the_caller_s_words():
    with pytest.raises(ValueError, match=r"some of rotation, exemplar. Got \('jigsaw',\)"):
        S4LSettings(tasks=("jigsaw",))
    with pytest.raises(ValueError, match="Got 'kl'"):
        VATSettings(divergence="kl")
    with pytest.raises(ValueError, match="Got -1"):
        VATSettings(entropy=-1)


def test_a_learner_that_was_not_started_says_so():
    learner = MeanTeacher(MeanTeacherSettings(), STILL)
    with pytest.raises(RuntimeError, match=r"MeanTeacher has no teacher yet. Call start\(network\)"):
        learner.losses(reader(), batch([0.0, 0.0]), 0, torch.Generator())
    with pytest.raises(ValueError, match="PiModel keeps no state, but was given updates"):
        PiModel(PiModelSettings(), STILL).load_state_dict({"updates": 1})
