"""One method in one world, without records."""

import pytest

from arml import GatedARML, Uniform
from arml.lab.build import Folders, build
from arml.lab.experiments.suite_runs import world_run
from arml.lab.launch import train_run
from arml.lab.suite import WORLDS, run_world

WORLD = WORLDS["digits-loss-scales-mlp"]


@pytest.mark.parametrize(("method", "line"), [(None, "main_only"), (Uniform(), "joint")])
def test_it_does_what_a_recorded_run_does(method, line, tmp_path):
    error, weights = run_world(WORLD, method, seed=1, steps=20)
    recorded = train_run(world_run(WORLD, seed=1, method="uniform", learner=line, steps=20), tmp_path)
    assert error == recorded["test_error"]
    assert weights == recorded["weights"]


def test_the_oracle_is_uniform_weights_on_what_helps_in_natural_units(tmp_path):
    error, weights = run_world(WORLD, Uniform(), 0, tasks=WORLD.helpful, natural=True, steps=20)
    oracle = train_run(world_run(WORLD, learner="oracle", method="uniform", steps=20), tmp_path)
    assert error == oracle["test_error"]
    assert tuple(weights) == WORLD.helpful


def test_arguments_of_the_reweighter_are_passed_on():
    _, weights = run_world(WORLD, GatedARML(), 0, steps=4, every=100)
    assert weights != dict.fromkeys(weights, 1.0), "the first step updates"
    with pytest.raises(TypeError, match="no_such_setting"):
        run_world(WORLD, GatedARML(), 0, steps=1, no_such_setting=1)


def test_all_learners_share_labels_main_batches_and_the_first_trunk(tmp_path):
    runs = [world_run(WORLD, learner=learner, method="uniform") for learner in ("main_only", "oracle", "joint")]
    made = [build(run, Folders(tmp_path, tmp_path)) for run in runs]
    batches = [[parts.batches.next() for _ in range(3)] for parts in made]
    for parts, seen in zip(made[1:], batches[1:], strict=True):
        assert parts.network.heads["class"].weight.equal(made[0].network.heads["class"].weight)
        for ours, first in zip(seen, batches[0], strict=True):
            assert ours.x["main"].equal(first.x["main"])
    oracle, joint = batches[1:]
    assert oracle[0].x["noisy"].equal(joint[0].x["noisy"])
    assert tuple(made[1].learner.tasks) == WORLD.helpful
