"""The cosines in the record."""

import pytest
import torch

from arml.lab.agreement import MOST_COSINES, measure_agreement


def test_by_hand():
    """Gradients (3, 4), (0, 10) and (-3, -4): products 25, 40 and -25."""
    theta = torch.zeros(2, requires_grad=True)
    main, side = 3 * theta[0] + 4 * theta[1], 10 * theta[1]
    found = measure_agreement(main, {"side": side, "opposite": -main}, [theta])
    assert found["agreement"] == pytest.approx({"side": 1.6, "opposite": -1.0})
    assert found["cosine"] == pytest.approx({"side": 0.8, "opposite": -1.0})


def test_a_task_without_a_gradient_agrees_with_nothing():
    theta, head = torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)
    found = measure_agreement(theta.sum(), {"elsewhere": head.sum()}, [theta])
    assert found == {"agreement": {"elsewhere": 0.0}, "cosine": {"elsewhere": 0.0}}


def test_many_tasks_have_no_cosines_and_the_same_agreement():
    theta = torch.tensor([1.0, 2.0], requires_grad=True)
    many = {f"task {k}": (k + 1) * theta[0] + theta[1] for k in range(MOST_COSINES + 1)}
    found = measure_agreement(theta.sum(), many, [theta])
    assert list(found) == ["agreement"]
    few = dict(list(many.items())[:MOST_COSINES])
    first = {task: found["agreement"][task] for task in few}
    assert first == pytest.approx(measure_agreement(theta.sum(), few, [theta])["agreement"])
