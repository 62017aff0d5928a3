"""How long the first stage of the two-stage algorithm lasts: it scales with the run."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from core.settling import World
from lab.data.original_formats import celeba_files
from lab.own_data import write_shades
from lab.parts import make

from arml.convergence import Convergence, initial_state
from arml.lab.build.components import count_updates, make_reweighter
from arml.lab.experiments import domain_runs, multi_label_runs, semi_supervised_runs
from arml.lab.models import plain
from arml.lab.run_kinds import SemiSupervised
from arml.lab.train import descend, losses_of

PACS, CELEBA = domain_runs.paper("pacs"), multi_label_runs.paper("celeba")


def first_stage(run):
    return make_reweighter(
        replace(run, method="arml_full"), ["a", "b"], plain(1, 8), aux_scale=1.0, train_on_main=True
    ).convergence


def updates_until_settled(rule, path):
    """After how many of the updates ``path`` [n, K] the weights have settled."""
    ones = torch.ones(len(path), 1, dtype=torch.float64)
    state = initial_state(torch.ones(1 + path.shape[1], dtype=torch.float64))
    for count, weights in enumerate(torch.cat([ones, path], dim=1), start=1):
        state = rule.update(state, weights)
        if state.settled:
            return count
    return None


def corners(updates):
    """Three weights that jump from corner to corner of the simplex."""
    return 3 * torch.eye(3, dtype=torch.float64)[torch.from_numpy(np.random.default_rng(0).integers(0, 3, updates))]


def noise_around_one(updates, size=1e-3):
    return torch.from_numpy(1 + size * np.random.default_rng(1).standard_normal((updates, 3)))


@pytest.mark.parametrize("steps", [40, 300, 1000])
@pytest.mark.parametrize("every", [1, 5])
@pytest.mark.parametrize("path", [corners, noise_around_one], ids=lambda path: path.__name__)
def test_noise_is_judged_between_a_quarter_and_half_of_the_run(steps, every, path):
    run = SemiSupervised(steps=steps, every=every)
    updates = steps // every
    found = updates_until_settled(first_stage(run), path(updates))
    assert updates / 4 < found <= max(1, updates / 2)


def test_an_approach_hidden_by_noise_no_longer_ends_the_first_stage_at_once():
    paths = World(noise=0.3, tau=1000).paths(seeds=20, updates=192)
    alone = [updates_until_settled(Convergence(2, tolerance=0.1), path[:, None]) for path in paths]
    assert min(found for found in alone if found) < 0.05 * PACS.steps, "the rule alone is early on some paths"
    assert all(updates_until_settled(first_stage(PACS), path[:, None]) is None for path in paths)


@pytest.mark.parametrize("run", [PACS, CELEBA, semi_supervised_runs.paper("cifar10")], ids=lambda run: run.dataset)
def test_paper_presets_are_judged_after_a_quarter_and_end_at_half(run):
    rule = first_stage(run)
    assert run.steps / 4 < 4 * rule.window <= run.steps / 4 + 4
    assert rule.at_most == run.steps / 2


def test_a_longer_window_counts_and_half_of_the_run_is_the_end():
    rule = first_stage(SemiSupervised(steps=100, every=1, window=20))
    assert (rule.window, rule.at_most) == (20, 50)
    assert first_stage(SemiSupervised(steps=1)).at_most == 1


@pytest.mark.parametrize("growing", [False, True])
def test_updates_are_counted_as_the_reweighter_makes_them(growing, tmp_path):
    run = SemiSupervised(network="plain-8", batch_labelled=2, batch_unlabelled=2, every=3, growing=growing)
    parts, changes = make(run, tmp_path), 0
    for step in range(40):
        before = parts.reweighter.signals
        descend(parts, losses_of(parts, step))
        changes += parts.reweighter.signals is not before
        assert count_updates(run, step + 1) == changes


def small_pacs(folder):
    run = replace(domain_runs.paper("folders"), folders=str(write_shades(folder)), target="ink", image_size=16)
    return replace(run, network="plain-8", batch_source=4, batch_target=4)


def small_celeba(folder):
    attributes = celeba_files(folder / "celeba", rows=30) / "list_attr_celeba.txt"
    count, names, *lines = attributes.read_text().splitlines()
    draws = np.random.default_rng(0).choice(["1", "-1"], (30, 40))
    rows = [" ".join([line.split()[0], *values]) for line, values in zip(lines, draws, strict=True)]
    attributes.write_text("\n".join([count, names, *rows]) + "\n")
    run = replace(CELEBA, main="Attribute_0", labels=None, network="small-8", image_size=16)
    return replace(run, batch_main=4, batch_aux=4)


def small_digits(folder):
    del folder
    return replace(semi_supervised_runs.paper("digits"), network="plain-8", batch_labelled=4, batch_unlabelled=4)


@pytest.mark.parametrize("small", [small_pacs, small_celeba, small_digits], ids=lambda small: small.__name__)
def test_the_first_steps_of_a_paper_preset_do_not_end_its_first_stage(small, tmp_path):
    parts = make(replace(small(tmp_path), method="arml_full"), tmp_path)
    for step in range(40):
        descend(parts, losses_of(parts, step))
    assert not parts.reweighter.converged
    assert parts.reweighter.signals is not None, "weights were updated"
