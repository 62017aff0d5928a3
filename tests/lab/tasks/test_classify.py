"""The main task, on a case worked by hand."""

import math

import torch
from lab.tasks.pixel_networks import LN3, linear, pixels
from torch import tensor
from torch.testing import assert_close

from arml.lab.models import Network, small
from arml.lab.tasks.classify import classify, classify_with_unlabelled


def test_classify():
    network = linear([[LN3, 0, 0, 0], [0, 0, 0, 0]])
    x, y = pixels([1, 0, 0, 0], [1, 0, 0, 0]), tensor([0, 1])  # probabilities 3/4 and 1/4
    expected = tensor(-(math.log(3 / 4) + math.log(1 / 4)) / 2, dtype=torch.float64)
    assert_close(classify(network, x, y), expected)
    main, logits = classify_with_unlabelled(network, x, y, pixels([2, 0, 0, 0]))
    assert_close(main, expected)
    assert_close(logits, tensor([[2 * LN3, 0]], dtype=torch.float64))


def test_classify_moves_statistics_once_over_both_kinds_of_images():
    network, twin = (Network(small(num_features=8), 8, {"class": 2}) for _ in range(2))
    twin.load_state_dict(network.state_dict())
    x, u = torch.randn(4, 1, 8, 8), torch.randn(6, 1, 8, 8)
    classify_with_unlabelled(network, x, tensor([0, 1, 0, 1]), u)
    twin(torch.cat([x, u]))
    assert_close(network.state_dict(), twin.state_dict(), rtol=0, atol=0)
