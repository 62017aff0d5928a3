"""The networks that are measured."""

from functools import partial

from torch import nn

from arml.bench.problems import RESNET, Kind, Problem
from arml.bench.session import KINDS


def test_every_kind_has_features_for_its_heads_and_a_last_layer():
    for kind in KINDS.values():
        problem = Problem(kind, 1, batch=2)
        assert problem.features().shape == (2, kind.num_features)
        names = [name for name, _ in problem.trunk.named_parameters()]
        assert any(name.startswith(problem.last_layer() + ".") for name in names)
    assert Problem(RESNET, 1, batch=2).num_parameters() == 11_176_512  # torchvision's 11 689 512 less fc's 513 000


def test_problem_has_the_parameters_that_are_counted_by_hand():
    kind = Kind("tiny", partial(nn.Linear, 3, 3), num_features=3, example=(3,), batch=8, quick_batch=8)
    problem = Problem(kind, 3)
    assert problem.num_parameters() == 3 * 3 + 3
    assert sum(p.numel() for p in problem.heads.parameters()) == 4 * (3 * 2 + 2)
