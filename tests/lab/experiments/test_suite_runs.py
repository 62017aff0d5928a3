"""Which runs the suite has."""

from arml.lab.experiments.suite_runs import QUICK, runs
from arml.lab.worlds import WORLDS


def lines(world):
    return [(run.learner, run.method) for run in runs([WORLDS[world]], seeds=1, methods=["arml"])]


def test_references_are_always_there_and_an_oracle_where_tasks_help():
    assert lines("digits-one-helps-mlp") == [
        ("main_only", "uniform"),
        ("oracle", "uniform"),
        ("joint", "uniform"),
        ("joint", "arml"),
    ]
    for world in ("digits-five-random-mlp", "tumours-measured-columns"):
        assert lines(world) == [("main_only", "uniform"), ("joint", "uniform"), ("joint", "arml")]


def test_the_tiers_have_their_own_seeds():
    made = runs([WORLDS["digits-one-helps-mlp"], WORLDS["mnist-two-help-cnn"]], seeds=2, methods=[])
    assert {(run.tier, run.seed) for run in made} == {("dev", 0), ("dev", 1), ("test", 2000), ("test", 2001)}


def test_runs_carry_the_truth_and_have_names_of_their_own():
    world = WORLDS["digits-three-help-two-mislead-mlp"]
    made = runs([world], seeds=2, method_files=["mine.py"])
    assert len({run.name() for run in made}) == len(made)
    assert {run.helpful for run in made} == {world.helpful}
    assert made[-1].method_file == "mine.py"
    assert made[-1].method == "mine"


def test_quick_worlds_are_of_dev():
    assert {WORLDS[name].tier for name in QUICK} == {"dev"}
