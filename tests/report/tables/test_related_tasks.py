"""The most and least related tasks, and the matrix over main tasks."""

from report.made_records import mlc_runs, ssl_runs, write
from report.made_reports import cell_texts, compare

from arml.lab.run_kinds import MultiLabel
from arml.report.data.final_weights import matrices
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
