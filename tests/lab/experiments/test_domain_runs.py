"""Which runs make the tables over domains."""

import pytest

from arml.lab.experiments.domain_runs import Table, cpu, paper


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
