"""Which runs make the tables over targets."""

from dataclasses import replace

import pytest

from arml.lab.experiments.multi_label_runs import Table, cpu, paper


def test_the_runs_of_a_table():
    lines = Table(mains=("Class1", "Class2"), methods=("uniform", "arml"), without=("Class2",))
    runs = lines.runs(cpu("yeast"), seeds=2)
    assert len(runs) == len({run.name() for run in runs}) == 2 * (4 + 3)
    assert {run.main for run in runs} == {"Class1", "Class2"}


def test_forkmerge_is_trained_where_it_is_named():
    usual, more = (Table(methods=("uniform",), forkmerge=named).runs(cpu("yeast"), seeds=1) for named in (False, True))
    assert [run.learner for run in usual] == ["main_only", "joint"]
    assert [(run.learner, run.line().method) for run in more] == [
        ("main_only", ""),
        ("forkmerge", ""),
        ("joint", "uniform"),
    ]


def test_the_paper_preset_is_the_papers_protocol():
    run = paper("celeba")
    assert (run.network, run.optimizer, run.lr, run.momentum) == ("resnet18", "sgd", 0.1, 0.9)
    assert (run.main, run.labels, run.batch_aux) == ("5_o_Clock_Shadow", 0.01, 256)
    assert run.steps == 90 * -(-162_770 // 256)
    assert [share * run.steps for share in run.lr_drop_at] == pytest.approx([30 * 636, 60 * 636])


def test_the_small_preset_of_celeba_asks_a_question_that_few_labels_can_answer():
    """Of 60 labels, about 30 are yes; 5_o_Clock_Shadow had 6, and no line beat always answering no."""
    run = cpu("celeba")
    assert (run.main, run.network, run.optimizer, run.lr, run.steps) == ("Smiling", "plain-64", "adam", 0.002, 1000)
    assert paper("celeba").weight_decay == 1e-4


def test_a_table_has_lines_without_a_network_and_one_task_is_on_or_off():
    base = replace(cpu("table"), table="t.csv", main="m", aux=("a", "b"))
    runs = Table().runs(base, seeds=1)
    assert [run.learner for run in runs[-4:]] == ["linear", "forest", "stacking", "aux_inputs"]
    assert not [run for run in Table(simple=False).runs(base, seeds=1) if run.learner == "linear"]
    assert not [run for run in Table().runs(cpu("yeast"), seeds=1) if run.learner == "linear"]
    single = Table().runs(replace(base, aux=("a",)), seeds=1)
    assert [run.method for run in single if run.learner == "joint"] == ["uniform", "agreement"]
