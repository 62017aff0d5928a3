"""Several main tasks side by side."""

from report.made_records import dg_runs
from report.made_reports import cell_texts, compare

from arml.report.tables.main_tasks import main_task_sheets


def test_targets_are_columns(tmp_path):
    dg_runs(tmp_path, dataset="pacs", targets=("sketch", "photo"), shots=(5,))
    (sheet,) = main_task_sheets(compare(tmp_path), paper=True)
    assert sheet.headings == ("", "photo", "sketch", "mean", "paper: photo", "paper: sketch")
    found = {row[0]: row[1:] for row in cell_texts(sheet)}
    assert found["Joint training (JT) + ARML"] == ["23.75 ± 9.53"] * 3 + ["2.78", "19.53"]
    assert found["Main task only"][3:] == ["", ""]
    assert any("tested on the whole target domain" in note for note in sheet.notes)
