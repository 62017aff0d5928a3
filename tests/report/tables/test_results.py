"""The table of a comparison."""

from dataclasses import replace

from report.made_records import write
from report.made_reports import cell_texts, compare

from arml.lab.run_kinds import MultiLabel, SemiSupervised
from arml.report.tables.results import result_sheet
from arml.report.tables.rows import as_json, make_rows


def test_the_paper_column_names_the_difference_in_protocol(tmp_path):
    write(tmp_path, SemiSupervised(dataset="cifar10", labels=4000), 20.0)
    (comparison,) = compare(tmp_path)
    sheet = result_sheet(comparison.subject, make_rows(comparison), paper=True)
    assert cell_texts(sheet)[0][-1] == "13.68 ± 0.35"
    assert any("200 000 steps" in note and "we choose on validation images" in note for note in sheet.notes)
    assert "paper" not in result_sheet(comparison.subject, make_rows(comparison), paper=False).headings


def test_the_measure_that_chose_the_network_comes_first_and_the_error_after_it(tmp_path):
    """CelebA: the paper reports errors, networks are chosen by average precision. The table has both, each paired."""
    for seed in range(2):
        base = MultiLabel(dataset="celeba", main="Smiling", seed=seed)
        for method, error, precision in (("uniform", 9.0, 40.0), ("arml", 8.0, 43.0)):
            measured = {"test_average_precision": precision + seed, "test_auc": 70.0}
            write(tmp_path, replace(base, method=method), error, measured=measured)
    (comparison,) = compare(tmp_path)
    sheet = result_sheet(comparison.subject, make_rows(comparison), paper=False)
    assert sheet.headings[1:6] == (
        "average precision",
        "difference to uniform",
        "error",
        "difference in error",
        "AUC",
    )
    uniform, arml = cell_texts(sheet)
    assert arml[1:5] == ["43.50 ± 6.35", "+3.00 ± 0.00*", "8.00 ± 0.00", "-1.00 ± 0.00*"]
    assert uniform[2] == uniform[4] == ""
    (with_difference,) = [row for row in as_json({comparison.subject: make_rows(comparison)}) if row["chosen_against"]]
    assert (with_difference["chosen_by"], with_difference["chosen_against"]["mean"]) == ("average_precision", 3.0)


def test_tables_of_networks_chosen_by_the_error_have_one_difference(tmp_path):
    write(tmp_path, SemiSupervised(), 20.0)
    write(tmp_path, MultiLabel(select="error"), 20.0, measured={"test_average_precision": 40.0})
    for comparison in compare(tmp_path):
        headings = result_sheet(comparison.subject, make_rows(comparison), paper=False).headings
        assert [heading for heading in headings if "difference" in heading] == ["difference to uniform"]


def test_simple_models_with_the_same_labels_stand_below_the_table(tmp_path):
    for seed in range(2):
        found = {"yardsticks": {"logistic_regression": 30.0 + 2 * seed, "most_frequent_class": 90.0}}
        run = SemiSupervised(method="uniform", seed=seed)
        write(tmp_path, run, 20.0, weights={"rotation": 1.0, "exemplar": 1.0}, measured=found)
    (comparison,) = compare(tmp_path)
    rows = make_rows(comparison)
    (note,) = [note for note in result_sheet(comparison.subject, rows, paper=False).notes if "Yardsticks" in note]
    linear, constant = "logistic regression on the same labels 31.00 ± 12.71 %", "always the most frequent class 90.00"
    assert note == f"Yardsticks: {linear}, {constant} ± 0.00 %."
    assert as_json({comparison.subject: rows})[0]["yardsticks"]["logistic_regression"]["mean"] == 31.0


def test_records_without_yardsticks_say_what_they_have(tmp_path):
    write(tmp_path, MultiLabel(method="uniform"), 20.0, measured={"test_majority_error": 31.5})
    (comparison,) = compare(tmp_path)
    notes = result_sheet(comparison.subject, make_rows(comparison), paper=False).notes
    assert "Always predicting the most frequent class (or the mean) gives an error of 31.50 %." in notes
    assert not any("Yardsticks" in note for note in notes)
