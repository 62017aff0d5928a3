"""Which runs make the tables over domains."""

from dataclasses import replace

import pytest

from arml.lab.experiments.domain_runs import Table, cpu, paper
from arml.lab.run import Line


def test_the_runs_of_a_table():
    table = Table(targets=("sketch", "photo"), shot_counts=(1, 5), methods=("uniform", "arml", "gradnorm"))
    runs = table.runs(cpu("pacs"), seeds=2)
    assert len(runs) == len({run.name() for run in runs}) == 2 * 2 * 2 * (3 + 3 * 2 + 3)


def test_the_paper_preset_is_the_papers_protocol():
    run = paper("pacs")
    assert (run.network, run.optimizer, run.lr, run.weight_decay) == ("resnet18", "sgd", 0.001, 5e-4)
    assert 3 * run.batch_source == 126
    assert run.lr * run.lr_drop == pytest.approx(0.0001)
    assert run.lr_drop_at == (0.8,)
    assert run.select == "sources"


def test_a_grid_search_over_three_sources(tmp_path):
    table = Table(learners=("jt",), methods=("uniform",), grid=True)
    runs = table.runs(cpu("pacs"), seeds=1)
    points = [run.method for run in runs if run.method.startswith("grid-")]
    assert len(points) == 28
    assert {run.line() for run in runs} == {Line("jt", "uniform"), Line("jt", "grid")}
    fewer = table.runs(replace(cpu("pacs"), leave_out=("photo",)), seeds=1)
    assert [run.method for run in fewer][1:] == ["grid-0", "grid-0.5", "grid-1", "grid-1.5", "grid-2"]
    for name in ("ink", "oil", "clay"):
        (tmp_path / name).mkdir()
    own = replace(cpu("folders"), folders=str(tmp_path), target="ink")
    assert len(table.runs(own, seeds=1)) == 1 + 5
    with pytest.raises(ValueError, match=r"two or three auxiliary tasks. Got 4"):
        table.runs(cpu("digits"), seeds=1)
