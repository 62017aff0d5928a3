"""The teacher that follows."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from arml.lab.models import EMATeacher, Network, small

EXACT = {"rtol": 0, "atol": 0}


def network():
    return Network(small(num_features=8), 8, {"class": 3}).double()


def moved(student):
    with torch.no_grad():
        for p in student.parameters():
            p.add_(torch.randn_like(p))
    return [p.detach().clone() for p in student.parameters()]


def test_the_average_is_that_of_the_formula():
    student = network()
    teacher = EMATeacher(student, decay=0.95)
    expected = [p.detach().clone() for p in student.parameters()]
    for t in range(40):
        d = min(1 - 1 / (t + 1), 0.95)
        expected = [d * mine + (1 - d) * theirs for mine, theirs in zip(expected, moved(student), strict=True)]
        teacher.update(student)
        assert_close(list(teacher.network.parameters()), expected)


def test_at_first_it_is_the_plain_mean_of_what_it_was_shown():
    student = network()
    teacher = EMATeacher(student, decay=0.95)
    shown = []
    for _ in range(20):
        shown.append(moved(student))
        teacher.update(student)
        mean = [torch.stack(parts).mean(0) for parts in zip(*shown, strict=True)]
        assert_close(list(teacher.network.parameters()), mean)


def test_it_is_a_copy_without_gradients_whose_statistics_never_move():
    student = network()
    teacher = EMATeacher(student)
    before = {name: b.clone() for name, b in teacher.network.named_buffers()}
    x = torch.randn(5, 1, 8, 8, dtype=torch.float64)
    assert not teacher.logits(x).requires_grad
    assert not teacher.features(x).requires_grad
    assert_close(teacher.logits(x), student(x).detach(), **EXACT)  # normalises by the batch, as in training
    student(x).sum().backward()
    teacher.update(student)
    assert_close(dict(teacher.network.named_buffers()), before, **EXACT)
    assert all(not p.requires_grad for p in teacher.network.parameters())
    assert all(p.requires_grad for p in student.parameters())


def test_it_trains_even_when_copied_from_a_network_in_evaluation_mode():
    assert EMATeacher(network().eval()).network.training


def test_a_frozen_part_of_the_network_stays_as_it_is():
    student = network()
    student.trunk.requires_grad_(False)
    teacher = EMATeacher(student)
    with torch.no_grad():
        student.heads["class"].bias.fill_(1.0)
    for _ in range(30):
        teacher.update(student)
    assert_close(list(teacher.network.trunk.parameters()), list(student.trunk.parameters()), **EXACT)


def test_it_continues_exactly_from_its_state():
    student = network()
    teacher = EMATeacher(student)
    for _ in range(3):
        moved(student)
        teacher.update(student)
    other = EMATeacher(network())
    other.load_state_dict(teacher.state_dict())
    moved(student)
    teacher.update(student)
    other.update(student)
    assert other.updates == 4
    assert_close(other.network.state_dict(), teacher.network.state_dict(), **EXACT)


@pytest.mark.parametrize("decay", [-0.1, 1.0, float("nan")])
def test_impossible_decays_are_refused(decay):
    with pytest.raises(ValueError, match=f"Got {decay}"):
        EMATeacher(Network(nn.Flatten(), 4, {"class": 2}), decay)
