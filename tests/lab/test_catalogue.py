"""The catalogue says what the classes do."""

import itertools
import re
from dataclasses import replace
from typing import get_args

import pytest
import torch
from lab.parts import make

from arml import Fixed, Signals, Uniform
from arml.lab.build import domains, multi_label, semi_supervised, suite
from arml.lab.catalogue import (
    COMPARED_METHODS,
    GRID,
    GRIDS,
    LEARNERS,
    METHODS,
    MethodFacts,
    find_method,
    grid_for,
    method_names,
)
from arml.lab.experiments import domain_runs, multi_label_runs, semi_supervised_runs
from arml.lab.run import Run
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised, Suite
from arml.lab.simple_models import SIMPLE_MODELS
from arml.lab.train import descend, losses_of
from arml.report.titles import ARMLS, FIXED, line_title, uses_labels

BUILDERS = {"ssl": semi_supervised, "mlc": multi_label, "dg": domains, "suite": suite}
SMALL = {
    "ssl": SemiSupervised(batch_labelled=4, batch_unlabelled=4),
    "mlc": MultiLabel(network="mlp-8", batch_main=4, batch_aux=8),
    "dg": Domains(network="plain-8", batch_source=4, batch_target=4),
    "suite": Suite(world="digits-one-helps-mlp", helpful=("plain",), network="mlp-8", batch_main=4, batch_aux=4),
}
EVERY_LEARNER = [
    (setting, name) for setting, learners in LEARNERS.items() for name, facts in learners.items() if not facts.simple
]
"""Learners with a network."""


class Trunk:
    last_layer = "last"


def learn(facts: MethodFacts, gram: torch.Tensor) -> torch.Tensor:
    """Weights after forty updates on losses that fall at different rates."""
    method = facts.make(Trunk())
    state = method.init(gram[0])
    weights = torch.ones_like(gram[0])
    for step in range(40):
        losses = torch.tensor([1.0, 0.5, 2.0]) * torch.tensor([0.99, 0.9, 0.97]) ** step
        directions = method.directions(state)
        alignment = None if directions is None else directions @ gram
        weights, state = method.update(state, Signals(losses, alignment, gram=gram, norms=gram.diagonal().sqrt()))
    return weights


def conflicting(factor: float) -> torch.Tensor:
    """Inner products of a main task with a helper and an opponent, which change places where ``factor`` is negative."""
    g = torch.tensor([[1.0, 0.0], [0.5, 0.5], [-0.5, 1.0]])
    g[0] *= factor
    return g @ g.T


@pytest.mark.parametrize("name", [*METHODS, *GRID])
def test_learned_and_steered_are_what_the_class_does(name):
    facts = find_method(name)
    weights, turned = (learn(facts, conflicting(factor)) for factor in (1.0, -2.0))
    start = facts.make(Trunk())
    assert facts.learned == (not isinstance(start, Uniform | Fixed))
    assert facts.steered == (not torch.equal(weights, turned)), "the main gradient is longer, and points the other way"


@pytest.mark.parametrize("name", [name for name, facts in METHODS.items() if facts.paper])
def test_the_paper_of_a_method_is_in_its_docstring(name):
    facts = METHODS[name]
    author, venue = facts.paper.split()[0], re.split(r", ", facts.paper)[-1]
    words = " ".join((type(facts.make(Trunk())).__doc__ or "").split())
    assert author in words
    assert venue in words


@pytest.mark.parametrize(("setting", "name"), EVERY_LEARNER)
def test_the_paper_of_a_learner_is_in_its_docstring(setting, name, tmp_path):
    facts = LEARNERS[setting][name]
    learner = make(replace(SMALL[setting], learner=name, method="uniform"), tmp_path).learner
    words = " ".join((type(learner).__doc__ or "").split())
    assert facts.paper.split(" ")[0].rstrip(",") in words


@pytest.mark.parametrize("setting", LEARNERS)
def test_the_builder_makes_every_learner(setting):
    assert [(setting, name) for name in BUILDERS[setting].LEARNERS] == [
        one for one in EVERY_LEARNER if one[0] == setting
    ]
    simple = [name for name, facts in LEARNERS[setting].items() if facts.simple]
    assert simple == (list(SIMPLE_MODELS) if setting == "mlc" else [])


@pytest.mark.parametrize(("setting", "name"), EVERY_LEARNER)
def test_what_is_weighted_and_what_trains_is_what_the_class_does(setting, name, tmp_path):
    facts, run = LEARNERS[setting][name], replace(SMALL[setting], learner=name, method="uniform")
    parts = make(run, tmp_path)
    if facts.weighted or facts.main_only:
        assert bool(parts.learner.tasks) == facts.weighted
    assert getattr(parts.learner, "train_on_main", True) == facts.trains_on_main


@pytest.mark.parametrize("name", LEARNERS["dg"])
def test_labels_of_the_target_train_the_network_where_the_catalogue_says_so(name, tmp_path):
    def train_two_steps(spoil):
        run = replace(SMALL["dg"], learner=name, method="uniform", steps=2)
        parts = make(run, tmp_path)
        if spoil and parts.batches.target.sampler is not None:
            drawn = parts.batches.target
            drawn.images.y[:] = (drawn.images.y + 1) % 10
        for step in range(2):
            descend(parts, losses_of(parts, step))
        return torch.cat([p.flatten() for p in parts.network.trunk.parameters()]).detach()

    same = torch.equal(train_two_steps(spoil=False), train_two_steps(spoil=True))
    assert same == (not LEARNERS["dg"][name].trains_on_main)


def test_the_command_line_offers_what_the_catalogue_has():
    types = {field.name: field.type for field in Run.__dataclass_fields__.values()}
    assert get_args(types["method"]) == (*METHODS, *GRID, *GRIDS[3]) == method_names()
    for kind in (SemiSupervised, MultiLabel, Domains):
        assert get_args(kind.__dataclass_fields__["learner"].type) == tuple(LEARNERS[kind.setting])


def test_comparisons_include_what_is_marked_for_them_and_take_any_method():
    assert (
        *("uniform", "adaloss", "gradnorm", "cosine_sim", "ol_aux"),
        *("arml", "arml_full", "gated_arml", "agreement"),
    ) == COMPARED_METHODS
    for kind in (semi_supervised_runs, multi_label_runs, domain_runs):
        assert kind.Table().methods == COMPARED_METHODS
        base = kind.cpu(kind.DATASETS[0])
        runs = kind.Table(methods=tuple(METHODS)).runs(base, seeds=1)
        assert {run.line().method for run in runs} >= set(METHODS)


def test_reports_know_every_line():
    for setting, learners in LEARNERS.items():
        for learner, facts in learners.items():
            run = replace(SMALL[setting], learner=learner, method="arml")
            assert line_title(run.line()) == facts.title + (METHODS["arml"].suffix if facts.weighted else "")
            blind = replace(run, method="uniform")
            assert uses_labels(blind.line()) == facts.trains_on_main
    assert ARMLS == ("agreement", "arml", "gated_arml", "arml_full")
    assert set(FIXED) == {"uniform", "grid"}


@pytest.mark.parametrize("num_tasks", [2, 3])
def test_the_grid_covers_the_simplex_in_steps_of_a_half(num_tasks):
    weights = {name: facts.make(Trunk()).weights for name, facts in grid_for(num_tasks).items()}
    halves = [w for w in itertools.product(range(2 * num_tasks + 1), repeat=num_tasks) if sum(w) == 2 * num_tasks]
    assert sorted(weights.values()) == [tuple(half / 2 for half in w) for w in halves]
    assert len(set(weights)) == len(halves) == {2: 5, 3: 28}[num_tasks]
    assert find_method("grid-0.5-1-1.5").make(Trunk()).weights == (0.5, 1.0, 1.5)
    assert find_method("grid-0.5").make(Trunk()).weights == (0.5, 1.5)


def test_a_grid_over_other_numbers_of_tasks_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"two or three auxiliary tasks. Got 4"):
        grid_for(4)
    with pytest.raises(ValueError, match=r"two auxiliary tasks, by grid-A, or three.*Got grid-0.5 for 4: mnist5k"):
        make(replace(SMALL["dg"], method="grid-0.5"), tmp_path)
    run = replace(SMALL["dg"], method="grid-0.5-1-1.5", leave_out=("misleading",))
    assert list(make(run, tmp_path).reweighter.weights.values()) == [0.5, 1.0, 1.5]
    assert run.line().method == "grid"
