"""A sweep on a real Ray with two nodes, one of which is killed: the records are those of this machine alone."""

import os
import signal
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from arml.lab.build import Folders, build
from arml.lab.engines import OnRay
from arml.lab.folder_lock import lock_folder
from arml.lab.launch import train_run
from arml.lab.run import Run
from arml.lab.run_folder import is_done
from arml.lab.run_kinds import MultiLabel
from arml.lab.stopping import Stop, Stopped
from arml.lab.sweep import run_all
from arml.lab.train import train

RUN = MultiLabel(network="mlp-8", batch_main=8, batch_aux=8, steps=60, checkpoint_every=5, record_every=5)
RUNS = [replace(RUN, method="arml", seed=seed) for seed in range(3)]
SMALL = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Ray's own processes and sockets
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray"),
]


def train_slowly_until(run: Run, folder: Path, stop: Stop, *, flag: Path) -> None:
    """Trains as a worker does, but with long steps until ``flag`` is there."""
    with lock_folder(folder):
        if is_done(folder):
            return
        parts = build(run, Folders(folder, folder))
        after_step = parts.learner.after_step

        def pause(network):
            after_step(network)
            time.sleep(0 if flag.exists() else 0.2)

        parts.learner.after_step = pause
        train(run, parts, folder, resume=True, stop=stop)


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
    yield made
    made.shutdown()


def when(happened, act) -> threading.Thread:
    """Does ``act`` once ``happened()``."""

    def watch():
        deadline = time.monotonic() + 120
        while not happened() and time.monotonic() < deadline:
            time.sleep(0.1)
        act()

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


@pytest.mark.long
def test_a_sweep_survives_the_death_of_a_node_with_the_records_of_this_machine(tmp_path, cluster):
    node, flag, notes = cluster.add_node(**SMALL), tmp_path / "flag", []
    on_ray, here = tmp_path / "ray", tmp_path / "here"

    def kill():
        cluster.remove_node(node, allow_graceful=False)
        flag.touch()

    killer = when(lambda: len(list(on_ray.glob("*/checkpoint.pt"))) == 2, kill)  # one run per node
    work = partial(train_slowly_until, flag=flag)
    outcomes = run_all(RUNS, on_ray, engine=OnRay(cluster.address), work=work, note=notes.append)
    killer.join()
    assert [outcome.failure for outcome in outcomes] == [None] * 3
    assert any("trying again from its checkpoint" in note and "NodeDiedError" in note for note in notes), notes
    for run in RUNS:
        train_run(run, here)
        assert (on_ray / run.name() / "record.jsonl").read_bytes() == (here / run.name() / "record.jsonl").read_bytes()
    watched = []
    run_all(RUNS, on_ray, engine=OnRay("nowhere:1"), watch=watched.append)
    assert len(watched) == 3, "finished runs need no cluster"


@pytest.mark.long
def test_an_interrupted_sweep_leaves_checkpoints(tmp_path, cluster):
    work = partial(train_slowly_until, flag=tmp_path / "never")
    records = partial(tmp_path.glob, "*/record.jsonl")
    begun = when(lambda: any(p.stat().st_size > 1500 for p in records()), lambda: os.kill(os.getpid(), signal.SIGINT))
    endless = [replace(RUN, steps=10_000, checkpoint_every=10_000, seed=seed) for seed in range(2)]
    with pytest.raises(Stopped, match="0 of 2 runs") as stopped:
        run_all(endless, tmp_path, engine=OnRay(cluster.address), work=work)
    begun.join()
    assert stopped.value.exit_code == 130
    assert len(list(tmp_path.glob("*/checkpoint.pt"))) == 1


def test_the_missing_package_is_named_with_its_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ValueError, match=r"pip install 'arml\[ray\]'"):
        run_all(RUNS, tmp_path, engine=OnRay())
