"""A misleading source and its oracle."""

from report.made_records import dg_runs, ssl_runs, write
from report.made_reports import cell_texts, compare

from arml.lab.run_kinds import Domains
from arml.report.tables.misleading_source import misleading_sheets


def test_the_misleading_source_and_its_oracle(tmp_path):
    """Errors at 1 shot: main only 29, uniform 33, ARML 27, oracle 26, and 1 more (ARML 1.5) for seed 1."""
    dg_runs(tmp_path, shots=(1,))
    (sheet,) = misleading_sheets(compare(tmp_path))
    found = {row[0]: row[1:] for row in cell_texts(sheet)}
    assert found["Main task only"] == ["", "29.50 ± 6.35", "+3.00 ± 0.00*"]
    assert found["Joint training (JT), uniform weights"] == ["1.00 ± 0.00", "33.50 ± 6.35", "+7.00 ± 0.00*"]
    assert found["Joint training (JT) + ARML"] == ["0.05 ± 0.64", "27.75 ± 9.53", "+1.25 ± 3.18"]
    assert list(found)[-1] == "Oracle: Joint training (JT), uniform weights, without misleading"
    assert found[list(found)[-1]] == ["", "26.50 ± 6.35", ""]
    ssl_runs(tmp_path)
    assert len(misleading_sheets(compare(tmp_path))) == 1


def test_without_a_finished_oracle_there_is_no_table_of_a_misleading_source(tmp_path):
    """Nobody runs an oracle where every source misleads."""
    write(tmp_path, Domains(dataset="digits_misleading"), 10.0, weights={"misleading": 0.0})
    assert misleading_sheets(compare(tmp_path)) == []
    oracle = Domains(dataset="digits_misleading", method="uniform", leave_out=("misleading",))
    write(tmp_path, oracle)
    assert misleading_sheets(compare(tmp_path)) == []
    write(tmp_path, oracle, 9.0)
    assert len(misleading_sheets(compare(tmp_path))) == 1
