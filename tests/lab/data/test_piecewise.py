"""Numbers in pieces."""

import torch
from torch.testing import assert_close

from arml.lab.data.piecewise import MOST_INPUTS, PiecewiseLinear


def test_pieces_rise_one_after_the_other():
    x = torch.arange(81.0).unsqueeze(1)
    found = PiecewiseLinear(x, 8)(torch.tensor([[-5.0], [0.0], [15.0], [80.0], [99.0]]))
    assert found.shape == (5, 9)
    assert found[0, 1:].tolist() == found[1, 1:].tolist() == [-1] * 8
    assert_close(found[2, 1:], torch.tensor([1, 0, -1, -1, -1, -1, -1, -1.0]))
    assert found[3, 1:].tolist() == found[4, 1:].tolist() == [1] * 8


def test_columns_with_few_values_and_wide_tables_have_no_pieces():
    few = torch.arange(100).remainder(4).float().unsqueeze(1)
    assert torch.equal(PiecewiseLinear(few, 8)(few), few)
    wide = torch.randn(50, MOST_INPUTS // 2)
    assert PiecewiseLinear(wide, 8)(wide).shape == wide.shape
    third = torch.randn(50, MOST_INPUTS // 3)
    assert PiecewiseLinear(third, 8)(third).shape[1] <= MOST_INPUTS


def test_only_training_rows_decide():
    x = torch.randn(60, 2)
    pieces = PiecewiseLinear(x[:40], 4)
    assert torch.equal(pieces(x)[:40], pieces(x[:40]))
