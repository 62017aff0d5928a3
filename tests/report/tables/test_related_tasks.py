"""The most and least related tasks, and the matrix over main tasks."""

import math

from report.made_records import mlc_runs, ssl_runs, write
from report.made_reports import cell_texts, compare
from torch.testing import assert_close

from arml.lab.run import Line, Subject
from arml.lab.run_kinds import MultiLabel
from arml.report.data.final_weights import Matrix, matrices
from arml.report.data.summary import summarise
from arml.report.tables.related_tasks import matrix_sheet, related_sheets


def test_most_and_least_related_tasks(tmp_path):
    """Weights 2, 20/11, 18/11 ... 0, plus 0.01 for seed 1: mean 2.005, s = 0.00707, t(0.975, 1) = 12.706."""
    mlc_runs(tmp_path, mains=("Class1",))
    (sheet,) = related_sheets(compare(tmp_path), paper=False)
    assert cell_texts(sheet)[0] == ["1", "Class2", "2.00 ± 0.06", "Class13", "0.01 ± 0.06"]
    assert [row[1] for row in cell_texts(sheet)] == ["Class2", "Class3", "Class4", "Class5", "Class6"]
    assert [row[3] for row in cell_texts(sheet)] == ["Class13", "Class12", "Class11", "Class10", "Class9"]


def test_few_tasks_are_not_listed_twice(tmp_path):
    ssl_runs(tmp_path)
    assert related_sheets(compare(tmp_path), paper=False) == []
    mlc_runs(tmp_path, mains=("Class1",), tasks=5)
    (sheet,) = related_sheets(compare(tmp_path), paper=False)
    assert len(sheet.rows) == 2


def test_the_papers_lists_stand_next_to_ours(tmp_path):
    run = MultiLabel(dataset="celeba", main="5_o_Clock_Shadow", labels=0.01)
    write(tmp_path, run, 6.0, weights={"Goatee": 2.0, "Male": 0.1, "Bald": 1.5, "Smiling": 0.4})
    (sheet,) = related_sheets(compare(tmp_path), paper=True)
    assert cell_texts(sheet)[0] == ["1", "Goatee", "2.00", "Male", "0.10", "Mustache", "Mouth_Slightly_Open"]


def test_a_matrix_over_main_tasks(tmp_path):
    mlc_runs(tmp_path, tasks=3)
    (matrix,) = matrices(compare(tmp_path))
    assert matrix.mains == ["Class1", "Class2"]
    assert matrix.tasks == ["Class1", "Class2", "Class3", "Class4"]
    assert cell_texts(matrix_sheet(matrix)) == [
        ["Class1", "", "2.00", "1.00", "0.01"],
        ["Class2", "2.00", "", "1.00", "0.01"],
    ]


def make_matrix(*rows):
    """Main tasks m0, m1, ... and auxiliary tasks a, b, c, d with these weights."""
    weights = [[weight and summarise([weight]) for weight in row] for row in rows]
    mains = [f"m{number}" for number in range(len(rows))]
    return Matrix(Subject("mlc", "yeast", "m0", 50), Line("joint", "arml"), mains, [*"abcd"], weights)


def test_weights_are_called_relatedness_only_if_they_depend_on_the_main_task():
    """Ranks 1 2 3 4 against 1 2 4 3 have the correlation 1 - 6 (1 + 1) / (4 * 15) = 0.8."""
    same = make_matrix([0.1, 0.5, 1.5, 1.9], [0.2, 0.4, 1.8, 1.6])
    assert_close(same.likeness(), 0.8)
    assert matrix_sheet(same).title.startswith("Mean final weights: yeast")
    assert "do not say which tasks are related" in matrix_sheet(same).notes[-1]
    other = make_matrix([0.1, 0.5, 1.5, 1.9], [1.9, 1.5, 0.5, 0.1])
    assert_close(other.likeness(), -1.0)
    assert matrix_sheet(other).title.startswith("Relatedness, as mean final weights: yeast")
    assert len(matrix_sheet(other).notes) == 1


def test_two_common_tasks_or_equal_weights_say_nothing():
    assert math.isnan(make_matrix([None, 0.5, 1.0, 1.5], [0.5, None, 1.0, 1.5]).likeness())
    assert math.isnan(make_matrix([1.0, 1.0, 1.0, 1.0], [0.5, 1.0, 1.5, 1.0]).likeness())
