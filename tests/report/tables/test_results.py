"""The table of a comparison."""

from report.made_records import write
from report.made_reports import cell_texts, compare

from arml.lab.run_kinds import SemiSupervised
from arml.report.tables.results import result_sheet
from arml.report.tables.rows import make_rows


def test_the_paper_column_names_the_difference_in_protocol(tmp_path):
    write(tmp_path, SemiSupervised(dataset="cifar10", labels=4000), 20.0)
    (comparison,) = compare(tmp_path)
    sheet = result_sheet(comparison.subject, make_rows(comparison), paper=True)
    assert cell_texts(sheet)[0][-1] == "13.68 ± 0.35"
    assert any("200 000 steps" in note and "we choose on validation images" in note for note in sheet.notes)
    assert "paper" not in result_sheet(comparison.subject, make_rows(comparison), paper=False).headings
