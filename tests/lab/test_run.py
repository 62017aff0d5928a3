"""A run as plain data."""

from arml.lab.run_kinds import MultiLabel


def test_long_names_still_name_a_folder(tmp_path):
    run = MultiLabel(main="ä" * 300, leave_out=tuple(f"target{n}" for n in range(40)))
    (tmp_path / run.name()).mkdir()
    assert run.name() != MultiLabel(main="ä" * 301, leave_out=run.leave_out).name()


def test_points_of_a_grid_are_compared_by_the_measure_that_chooses_networks():
    found = {"error": 10.0, "average_precision": 40.0}
    assert MultiLabel().score(found) == -40.0
    assert MultiLabel(select="error").score(found) == 10.0
    assert MultiLabel(select="auc").score({"error": 3.0}) == 3.0
