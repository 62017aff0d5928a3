"""Every target of every table as the main one in turn."""

import pytest

from arml.lab.build import complete
from arml.lab.experiments import table_study
from arml.lab.experiments.artefact import make_plan
from arml.lab.experiments.table_study import EMBEDDED, LABELS, find_tables, make_parts


def write_table(folder, name="flowers", columns=("a", "b", "petals", "colour, inside", "leaves")):
    rows = [",".join(str((row * (7 + place)) % (11 + place) / 2) for place in range(len(columns))) for row in range(60)]
    header = ",".join(f'"{column}"' for column in columns)
    (folder / f"{name}.csv").write_text("\n".join([header, *rows]) + "\n")


def runs_of(folder, out, seeds=1):
    return [complete(run) for part in make_parts(find_tables(folder, out)) for run in part.runs(seeds)]


def test_every_embedded_target_is_the_main_one_in_turn(tmp_path):
    runs = runs_of(None, tmp_path)
    mains = {(run.subject().dataset.split("@")[0], run.main) for run in runs}
    assert mains == {(name, main) for name, targets in EMBEDDED.items() for main in targets.mains}
    assert len(runs) == len({run.name() for run in runs}) == len(mains) * len(LABELS) * 4
    assert {run.line() for run in runs if run.table.endswith("iris.csv")} == {
        ("main_only", "", ""),
        ("joint", "uniform", ""),
        ("joint", "arml", ""),
        ("joint", "agreement", ""),
    }
    assert all(set(run.aux).isdisjoint([run.main]) for run in runs)


def test_tables_of_ones_own_name_their_targets_in_a_file(tmp_path):
    write_table(tmp_path)
    with pytest.raises(ValueError, match=r"The targets of .*flowers.csv are unknown. Name them in .*targets.toml"):
        find_tables(tmp_path, tmp_path / "out")
    (tmp_path / "targets.toml").write_text('flowers = ["petals"]\n')
    with pytest.raises(ValueError, match=r"flowers should be a list of two or more names of columns. Got \['petals'\]"):
        find_tables(tmp_path, tmp_path / "out")
    (tmp_path / "targets.toml").write_text('flowers = ["petals", "colour, inside", "leaves"]\n')
    runs = [run for run in runs_of(tmp_path, tmp_path / "out") if "flowers" in run.table]
    targets = {"petals", "colour, inside", "leaves"}
    assert {run.main for run in runs} == targets
    assert all({run.main, *run.aux} == targets for run in runs)


def test_known_tables_count_columns_or_name_counts(tmp_path):
    write_table(tmp_path, "emotions", tuple(f"c{number}" for number in range(9)))
    write_table(tmp_path, "sf2", ("size", "c-class", "m-class", "x-class"))
    runs = runs_of(tmp_path, tmp_path / "out")
    assert {run.main for run in runs if "emotions" in run.table} == {f"c{number}" for number in range(3, 9)}
    flares = [run for run in runs if "sf2" in run.table]
    assert {(run.main, run.aux) for run in flares} == {("c-class", ("m-class", "x-class"))}
    assert {run.as_numbers for run in flares} == {("c-class", "m-class", "x-class")}


def test_the_artefact_is_timed(tmp_path):
    """Also the runs as they are trained: with fingerprints of their tables, and with the names of the columns apart."""
    write_table(tmp_path)
    (tmp_path / "targets.toml").write_text('flowers = ["petals", "colour, inside", "leaves"]\n')
    runs = table_study.table_study(tmp_path, tmp_path / "out").runs("cpu", 1)
    assert set(runs.values()) == set(table_study.SECONDS.values())
    plan = make_plan({complete(run): seconds for run, seconds in runs.items()}, lambda run: False)
    assert plan.unmeasured == 0
    assert any(line.startswith("data set flowers@") and line.endswith(": 36 runs") for line in plan.lines), plan.lines


def test_texts_are_compared_with_few_and_with_many_labels(tmp_path):
    artefact = table_study.text_study(tmp_path)
    runs = artefact.runs("cpu", 1)
    assert all(run.main == "part" and len(run.aux) == 12 for run in runs)
    assert {run.labels for run in runs} == set(table_study.TEXT_LABELS)
    assert {run.line()[:2] for run in runs} >= {("main_only", ""), ("joint", "agreement"), ("linear", "")}
    assert make_plan({complete(run): seconds for run, seconds in runs.items()}, lambda run: False).unmeasured == 0
