"""A process that trains many runs reads each data set once."""

from dataclasses import replace

import pytest
import torch

from arml.lab.build import Folders, build, domains, multi_label, semi_supervised
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised

RUNS = [
    (SemiSupervised(), semi_supervised),
    (Domains(network="small-8"), domains),
    (MultiLabel(network="mlp-8"), multi_label),
]


@pytest.mark.parametrize(("run", "setting"), RUNS)
def test_runs_on_the_same_data_share_them(run, setting, tmp_path, monkeypatch):
    read, kept = [], {}
    original = setting._read
    monkeypatch.setattr(setting, "_read", lambda *given: read.append(given) or original(*given))
    for seed in range(2):
        for method in ("uniform", "arml"):
            build(replace(run, seed=seed, method=method), Folders(tmp_path, tmp_path, kept))
    assert len(read) == 1
    build(run, Folders(tmp_path, tmp_path))
    assert len(read) == 2, "a single run reads anew"


@pytest.mark.parametrize(("run", "setting"), RUNS)
def test_kept_data_make_no_difference(run, setting, tmp_path):
    del setting
    kept = Folders(tmp_path, tmp_path, {})
    build(replace(run, seed=1), kept)
    shared, alone = build(run, kept), build(run, Folders(tmp_path, tmp_path))
    losses = [parts.losses(parts.batches.next(), 0, parts.generator) for parts in (shared, alone)]
    assert torch.equal(losses[0][0], losses[1][0])
    assert losses[0][1].keys() == losses[1][1].keys()
    assert all(torch.equal(loss, losses[1][1][name]) for name, loss in losses[0][1].items())


def test_other_folders_and_other_data_are_read():
    kept = {}
    here = Folders("here", "cache", kept)
    assert here.read_once("a", lambda: 1) == 1
    assert here.read_once("a", lambda: 2) == 1
    assert here.read_once("b", lambda: 2) == 2
    assert Folders("there", "cache", kept).read_once("a", lambda: 3) == 3
    assert here.read_once("c", lambda: 4) == 4
    assert here.read_once("a", lambda: 5) == 5, "only the last few are kept"
