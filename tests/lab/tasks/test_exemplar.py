"""Exemplar-MT, on a case worked by hand, and its distortions."""

import torch
from lab.tasks.pixel_networks import linear, pixels
from torch import tensor
from torch.testing import assert_close

from arml.lab.models import EMATeacher, Network, small
from arml.lab.tasks.exemplar import distort, exemplar


def test_exemplar():
    network = linear([[0, 0, 0, 0], [0, 0, 0, 0]])
    teacher = EMATeacher(network)
    view = pixels([1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0])
    distorted = pixels([1, 1, 0, 0], [2, 0, 0, 0], [-1, 0, 0, 0])  # cosines 1 / sqrt 2, 1, -1
    expected = tensor((1 - 0.5**0.5 + 0 + 2) / 3, dtype=torch.float64)
    assert_close(exemplar(network, teacher, view, distorted), expected)


def test_exemplar_teaches_the_student_only_and_moves_no_statistics():
    network = Network(small(num_features=8), 8, {"class": 2})
    teacher = EMATeacher(network)
    before = {name: b.clone() for name, b in network.named_buffers()}
    x = torch.randn(6, 1, 8, 8)
    exemplar(network, teacher, x, x + torch.randn_like(x)).backward()
    assert_close(dict(network.named_buffers()), before, rtol=0, atol=0)
    assert all(p.grad is not None for p in network.trunk.parameters())
    assert all(p.grad is None for p in teacher.network.parameters())


def test_minus_the_cosine_has_the_same_gradient():
    network = Network(small(num_features=8), 8, {"class": 2}).double()
    teacher = EMATeacher(network)
    x = torch.randn(6, 1, 8, 8, dtype=torch.float64)
    distorted = x + torch.randn_like(x)
    ours = torch.autograd.grad(exemplar(network, teacher, x, distorted), list(network.trunk.parameters()))
    a, b = network.features(distorted), teacher.features(x)
    minus_cosine = -((a * b).sum(1) / (a.norm(dim=1) * b.norm(dim=1))).mean()
    assert_close(ours, torch.autograd.grad(minus_cosine, list(network.trunk.parameters())))


def test_distort_covers_half_the_side_and_adds_noise_without_bias():
    x = torch.ones(2000, 1, 8, 8)
    x[:, :, :, :4] = -1  # range 2: the noise has standard deviation 0.03
    distorted = distort(x, torch.Generator().manual_seed(0))
    covered = distorted == 0
    assert covered.flatten(1).sum(1).max() == 16
    assert covered.flatten(1).sum(1).min() == 4  # a box around a corner
    signs = distorted[~covered].sign()
    left = distorted[~covered] - signs
    assert_close(left.std(), tensor(0.03), rtol=0.02, atol=0)
    assert abs(float(left.mean())) < 1e-3
    flipped = [
        image.sign()[~hole][0] for image, hole in zip(distorted[:, 0], covered[:, 0], strict=True) if not hole[0, 0]
    ]
    assert 0.4 < float((torch.stack(flipped) > 0).float().mean()) < 0.6, "half of the images are flipped"


def test_distort_draws_for_every_image_from_the_given_generator_only():
    x = torch.rand(1, 1, 8, 8).expand(50, -1, -1, -1)
    state = torch.get_rng_state()
    once, again = (distort(x, torch.Generator().manual_seed(7)) for _ in range(2))
    assert_close(once, again, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), state)
    assert len(once.flatten(1).eq(0).unique(dim=0)) > 20, "boxes differ from image to image"
