"""The matrix of final weights over main tasks."""

from report.made_records import mlc_runs
from report.made_reports import compare

from arml.report.data.final_weights import matrices


def test_tasks_with_numbers_are_in_the_order_of_numbers(tmp_path):
    mlc_runs(tmp_path, tasks=11)
    (matrix,) = matrices(compare(tmp_path))
    assert matrix.tasks == [f"Class{k}" for k in range(1, 13)]


def test_the_matrix_is_empty_where_main_and_auxiliary_task_are_the_same(tmp_path):
    """Weights 2, 1 and 0, plus 0.01 for seed 1."""
    mlc_runs(tmp_path, tasks=3)
    (matrix,) = matrices(compare(tmp_path))
    assert matrix.mains == ["Class1", "Class2"]
    assert matrix.tasks == ["Class1", "Class2", "Class3", "Class4"]
    means = [[weight and round(weight.mean, 3) for weight in row] for row in matrix.weights]
    assert means == [[None, 2.005, 1.005, 0.005], [2.005, None, 1.005, 0.005]]
