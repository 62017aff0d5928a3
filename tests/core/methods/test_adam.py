"""Adam on a handful of numbers, against torch's."""

import torch
from torch.testing import assert_close

from arml.methods._adam import adam_direction, begin_moments


def test_equals_torchs_adam():
    slopes = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    expected = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([expected], lr=0.1, eps=0)
    found, moments = torch.zeros(3, dtype=torch.float64), begin_moments(slopes[0])
    for slope in slopes:
        expected.grad = slope
        optimizer.step()
        step, moments = adam_direction(slope, torch.ones(3, dtype=torch.bool), moments)
        found = found - 0.1 * step
    assert_close(found, expected.detach())


def test_a_number_that_is_left_out_is_not_touched():
    slope, here = torch.tensor([1.0, 5.0]), torch.tensor([True, False])
    step, moments = adam_direction(slope, here, begin_moments(slope))
    assert_close(step, torch.tensor([1.0, 0.0]))
    assert [part[1].item() for part in moments] == [0, 0, 0]


def test_slopes_of_zero_give_no_step():
    step, _ = adam_direction(torch.zeros(2), torch.ones(2, dtype=torch.bool), begin_moments(torch.zeros(2)))
    assert step.tolist() == [0, 0]
