"""Tables about several processes."""

from dataclasses import replace

from arml.bench.expected_traffic import expected_costs
from arml.bench.process_tables import expected_sheet, processes_sheet
from arml.bench.result import ProcessCost, Result


def test_tables_say_it_in_words():
    row = ProcessCost("tiny", 3, "pairwise", 2, 1, 176, 3, 1520, 12.3, 10.0, 20.0, 5, 0, 2.5)
    sheet = processes_sheet(Result({}, {}, processes=(row, replace(row, refused=4))))
    cells = ("pairwise", "2", "176 B in 1", "1.52 kB in 3", "12.3", "10.0 to 20.0", "5", "2.50")
    assert [tuple(cell.text for cell in one) for one in sheet.rows] == [
        cells,
        (*cells[:6], "5, 4 refused", "2.50"),
    ]
    on_paper = expected_sheet(expected_costs(1_000_000_000, 200, every=10)[:2], 1_000_000_000, 200, 10)
    assert [tuple(cell.text for cell in one) for one in on_paper.rows] == [
        ("fixed weights", "3", "1.00", "0 B", "1", "4.00 GB", "nothing", "1.00", "1.00"),
        ("double_backward", "7", "2.33", "8.00 GB", "2", "4.00 GB", "4.00 GB in 3", "1.13", "1.10"),
    ]
    for one in (sheet, on_paper):
        assert {len(one.headings)} == {len(cells) for cells in one.rows}
