"""A run with many targets becomes data, learner and batches."""

from dataclasses import replace

import pytest
import torch
from cli.typed import arml
from lab.own_data import write_patients
from lab.parts import make

from arml.lab.build import Folders
from arml.lab.build.multi_label import complete
from arml.lab.build.settings import check_data
from arml.lab.data.table_files import TableRemark
from arml.lab.experiments.multi_label_runs import Table
from arml.lab.run_kinds import MultiLabel
from arml.lab.train import descend, losses_of


@pytest.fixture
def table(tmp_path):
    return write_patients(tmp_path)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"nowhere\.csv"):
        complete(MultiLabel(dataset="table", table="nowhere.csv", main="a", aux=("b",)))
    with pytest.raises(ValueError, match="needs --table FILE"):
        complete(MultiLabel(dataset="table", main="a", aux=("b",)))


def test_numeric_and_many_valued_main_targets(table, tmp_path):
    for main, aux in (("score", "ill,third"), ("third", "ill,score")):
        run = complete(
            MultiLabel(dataset="table", table=str(table), main=main, aux=(aux,), network="mlp-16", labels=None)
        )
        parts = make(run, tmp_path)
        assert parts.learner.tasks == tuple(aux.split(","))
        found = parts.validation(parts.network.eval())
        assert ("rmse" in found) == (main == "score")
        assert parts.score(found) == (found["error"] if main == "score" else -found["average_precision"])


def test_unknown_targets_are_refused_before_any_run(tmp_path):
    failed = arml("compare", "mlc", "--mains", "Class1", "Class99", "--out", str(tmp_path))
    assert failed.returncode == 1
    assert "yeast has no target Class99. It has: Class1, Class2" in " ".join(failed.stderr.split())
    assert not list(tmp_path.glob("*/record.jsonl"))
    with pytest.raises(ValueError, match="No auxiliary target is left"):
        check_data([MultiLabel(aux=("Class2",), leave_out=("Class2",))], Folders(tmp_path, tmp_path))


def test_several_mains_of_a_table_are_no_features_of_each_other(table, tmp_path):
    base = complete(
        MultiLabel(dataset="table", table=str(table), aux=("twin",), main="", network="mlp-16", labels=None)
    )
    lines = Table(mains=("ill,third",), methods=("uniform",), main_only=False, simple=False, without=("twin",))
    runs = lines.runs(base, seeds=1)
    assert [(run.main, run.aux) for run in runs if not run.leave_out] == [
        ("ill", ("twin", "third")),
        ("third", ("twin", "ill")),
    ]
    for run in runs:
        assert make(run, tmp_path).batches.x.shape[1] == 2 + 1 + 3, "a, b, score and three wards"


def test_the_main_target_alone_needs_no_others(table, tmp_path):
    run = MultiLabel(dataset="table", table=str(table), main="ill", learner="main_only", network="mlp-16", labels=None)
    assert make(complete(run), tmp_path).reweighter is None


def test_a_changed_table_is_another_subject(table):
    run = MultiLabel(dataset="table", table=str(table), main="ill", aux=("twin",))
    before = complete(run).subject()
    table.write_text(table.read_text().replace("yes", "ja"))
    after = complete(run).subject()
    assert before.dataset.startswith("patients@")
    assert before != after


def test_files_of_weights_are_told_apart(tmp_path):
    path = tmp_path / "w.pth"
    path.write_bytes(b"one")
    first = complete(MultiLabel(weights=str(path)))
    path.write_bytes(b"two")
    assert complete(MultiLabel(weights=str(path))).name() != first.name()


def test_main_and_auxiliary_examples_are_drawn_separately(tmp_path):
    parts = make(MultiLabel(network="mlp-16", labels=20, batch_main=20, batch_aux=500), tmp_path)
    batch = parts.batches.next()
    again = parts.batches.next()
    assert batch.x.shape == (20, 103)
    assert batch.aux_x.shape == (500, 103)
    assert {tuple(x.tolist()) for x in batch.x} == {tuple(x.tolist()) for x in again.x}, "20 labels, no other example"
    assert len({tuple(x.tolist()) for x in batch.aux_x}) > 400


def test_forkmerge_merges_before_every_evaluation(tmp_path):
    run = MultiLabel(
        learner="forkmerge", method="uniform", network="mlp-8", batch_main=4, batch_aux=8, steps=7, evaluate_every=3
    )
    parts = make(run, tmp_path)
    for step in range(run.steps):
        descend(parts, losses_of(parts, step))
        branch, merged = parts.learner.state_dict()["branch"], parts.network.state_dict()
        is_merged = all(torch.equal(branch[name], value) for name, value in merged.items())
        assert is_merged == (step + 1 in (3, 6, 7))
    assert len(parts.learner.chosen) == 3


def test_forkmerge_needs_other_targets_and_weights_none(table):
    with pytest.raises(ValueError, match=r"needs --aux COLUMN,COLUMN,\.\.\.: .*--learner main_only"):
        complete(MultiLabel(dataset="table", table=str(table), main="ill", learner="forkmerge"))
    assert complete(MultiLabel(learner="forkmerge")).method == "uniform"
    with pytest.raises(ValueError, match="forkmerge has no losses that a method weights"):
        complete(MultiLabel(learner="forkmerge", method="adaloss"))


def test_a_table_holds_back_no_labels_unless_a_network_is_chosen(table, tmp_path):
    base = MultiLabel(dataset="table", table=str(table), main="ill", aux=("score", "third"), labels=20)
    last = complete(replace(base, select="last", network="mlp-16x2"))
    parts = make(last, tmp_path)
    assert parts.score is None
    assert parts.validation(parts.network.eval()) == {}
    assert len(parts.batches.samplers["main"].pool) == 20
    batch = parts.batches.next()
    assert torch.equal(batch.x[0::2], batch.x[1::2]), "every row twice, for two networks"
    chosen = make(complete(replace(base, network="mlp-16")), tmp_path)
    assert len(chosen.batches.samplers["main"].pool) == 16
    for more in ({"learner": "forkmerge", "method": "uniform"}, {"method": "grid-1"}):
        assert complete(replace(last, **more)).select == "average_precision", "these need a choice"
    assert last.overlap() == 0.25
    assert MultiLabel().overlap() == 0


def test_what_the_labels_are_used_for_is_said(table, tmp_path):
    run = complete(MultiLabel(dataset="table", table=str(table), main="ill", aux=("score",), labels=20, select="last"))
    with pytest.warns(TableRemark) as warned:
        make(replace(run, network="mlp-8"), tmp_path)
    lines = [str(warning.message) for warning in warned]
    assert lines[0] == (
        "40 of 120 rows have a label of 'ill'. Each seed uses 20 of them: 20 for learning, none for choosing a "
        "network. It is tested on 8 others, and 5 seeds in a row test every labelled row once."
    )
    assert lines[1].startswith("One auxiliary column, 'score': a weighting has nothing to share out")


def test_columns_may_have_commas_and_dashes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"price, net",-x,m,a\n' + "".join(f"{i * i},{i % 3},{i % 2},{i * 7 % 5}\n" for i in range(40)))
    run = MultiLabel(dataset="table", table=str(path), main="m", aux=("price, net", "-x,a"), labels=None)
    with pytest.raises(ValueError, match="no column is left"):
        make(complete(run), tmp_path)
    assert complete(complete(run)).aux == ("price, net", "-x", "a")


def test_results_of_a_number_and_of_its_classes_are_not_mixed():
    base = MultiLabel(dataset="table", table="t.csv", main="grade", labels=20)
    mains = [replace(base, **{kind: ("grade",)}).subject().main for kind in ("as_numbers", "as_classes")]
    assert mains == ["grade (number)", "grade (classes)"]
    assert replace(base, as_numbers=("other",)).subject() == base.subject()
