"""How often one line beats another, on errors that can be counted by hand."""

import pytest

from arml.lab.run import Line
from arml.report.data.wins import duel, rank_lines

ALONE, UNIFORM, ARML = Line("main_only"), Line("joint", "uniform"), Line("joint", "arml")
CELLS = {
    "flowers": [{ALONE: 10.0, UNIFORM: 8.0, ARML: 6.0}, {ALONE: 10.0, UNIFORM: 12.0, ARML: 10.0}],
    "songs": [{ALONE: 30.0, UNIFORM: 20.0, ARML: 25.0}],
}


def test_wins_ties_and_differences():
    found = duel(CELLS, ARML, ALONE)
    assert (found.wins, found.ties, found.cells, found.median) == (2, 1, 3, -4.0)
    assert found.mean.mean == pytest.approx((-2.0 - 5.0) / 2)
    assert found.mean.n == 2
    assert duel(CELLS, UNIFORM, ALONE).wins == 2
    assert duel(CELLS, ALONE, UNIFORM).wins == 1


def test_every_data_set_counts_once():
    """In flowers the ranks are 3, 2, 1 and 1.5, 3, 1.5: on average 2.25, 2.5, 1.25. In songs they are 3, 1, 2."""
    ranking, lines = rank_lines(CELLS)
    assert ranking.num_sets == 2
    assert {lines[name]: rank for name, rank in ranking.mean_ranks.items()} == {ARML: 1.5, UNIFORM: 2.0, ALONE: 2.5}
