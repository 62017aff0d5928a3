"""The table of labels needed."""

from report.made_records import write
from report.made_reports import compare

from arml.lab.run_kinds import Domains
from arml.report.data.topics import middle_level, topics
from arml.report.tables.labels_sheet import labels_sheet
from arml.report.tables.saving_sentences import saving_sentences


def test_levels_that_are_not_reached_are_marked(topic):
    sheet = labels_sheet(topic, 15.0)
    cells = {row[0].text: [cell.text for cell in row[1:]] for row in sheet.rows}
    assert cells["S4L, uniform weights"] == ["not reached", "", "0 of 3"]
    assert cells["S4L + ARML"][1:] == ["", "3 of 3"]
    assert labels_sheet(topic, 45.0).rows[0][1].text == "at most 10"
    assert any("geometric mean" in note for note in sheet.notes)


def write_shots(path, learner, method, errors):
    for count, error in errors.items():
        write(path, Domains(learner=learner, method=method, shots=count), error)


def test_all_labels_are_named_and_have_no_part_in_the_level(tmp_path):
    write_shots(tmp_path, "jt", "uniform", {0: 90.0, 1: 60.0, 5: 40.0, "all": 2.0})
    (found,) = topics(compare(tmp_path))
    assert middle_level(found) == 50.0
    sheet = labels_sheet(found, 50.0)
    assert sheet.notes[-1] == "labels tried: 0, 1, 5, all; 0 and all left out: no place on a logarithmic axis"
    assert sheet.rows[0][1].text == f"{5**0.5:.3g}"


def test_the_level_is_one_that_the_main_task_alone_reaches_too(tmp_path):
    """40 to 60 with equal weights and 50 to 70 alone have 50 to 60 in common."""
    write_shots(tmp_path, "jt", "uniform", {1: 60.0, 5: 40.0})
    write_shots(tmp_path, "main_only", "uniform", {1: 70.0, 5: 50.0})
    (found,) = topics(compare(tmp_path))
    assert middle_level(found) == 55.0


def test_where_the_main_task_alone_is_never_as_good_the_level_is_that_of_equal_weights(tmp_path):
    write_shots(tmp_path, "jt", "uniform", {1: 60.0, 5: 40.0})
    write_shots(tmp_path, "main_only", "uniform", {1: 90.0, 5: 80.0})
    (found,) = topics(compare(tmp_path))
    assert middle_level(found) == 50.0


def test_where_nothing_is_on_the_axis_no_number_is_made_up(tmp_path):
    write_shots(tmp_path, "jt", "uniform", {0: 90.0, "all": 10.0})
    (found,) = topics(compare(tmp_path))
    assert middle_level(found) == 50.0
    assert [cell.text for cell in labels_sheet(found, 50.0).rows[0][1:]] == ["one number of labels only", "", "0 of 0"]


def test_lines_that_use_no_label_need_none(tmp_path):
    """Errors of sources alone differ by chance; the level is not taken from them."""
    for learner in ("baseline", "jigen", "dsam", "shape_bias"):
        write_shots(tmp_path, learner, "uniform", {1: 80.0, 5: 10.0})
    write_shots(tmp_path, "baseline", "arml", {1: 60.0, 5: 40.0})
    write_shots(tmp_path, "jt", "uniform", {1: 60.0, 5: 40.0})
    (found,) = topics(compare(tmp_path))
    assert middle_level(found) == 50.0
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in labels_sheet(found, 50.0).rows}
    no_label = ["uses no label of the target", "", ""]
    assert rows.pop("Sources only (Baseline) + ARML") == ["2.24", "", "1 of 1"]
    assert rows.pop("Joint training (JT), uniform weights") == ["2.24", "", "1 of 1"]
    assert list(rows.values()) == [no_label] * 4


def test_the_main_task_alone_is_a_yardstick_of_its_own(tmp_path):
    """On straight lines over log(shots) from 1 to 100, 10 points are a factor of 10: 1, 10 ** 0.5 and 10 shots."""
    write_shots(tmp_path, "main_only", "uniform", {1: 60.0, 100: 40.0})
    write_shots(tmp_path, "jt", "uniform", {1: 55.0, 100: 35.0})
    write_shots(tmp_path, "jt", "arml", {1: 52.5, 100: 32.5})
    (found,) = topics(compare(tmp_path))
    sheet = labels_sheet(found, 50.0)
    assert sheet.headings[2:4] == ("share of what uniform needs", "share of what main only needs")
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in sheet.rows}
    assert rows["Main task only"] == ["10", "316 %", "", "1 of 1"]
    assert rows["Joint training (JT), uniform weights"] == ["3.16", "", "31.6 %", "1 of 1"]
    assert rows["Joint training (JT) + ARML"] == ["1.78", "56.2 %", "17.8 %", "1 of 1"]
    assert [sentence.split(",")[0] for sentence in saving_sentences(found, 50.0)] == [
        "Joint training (JT) + ARML needs 56.2 % of the labels that uniform weights need for an error of 50.00 %",
        "Joint training (JT) + ARML needs 17.8 % of the labels that the main task alone needs for an error of 50.00 %",
    ]
