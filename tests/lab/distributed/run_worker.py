"""One of the processes of torchrun: trains the runs that are named into a folder, or fails where it is told to."""

import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from arml._distributed import process_rank
from arml.lab.build import Folders, build, complete
from arml.lab.experiments.suite_runs import world_run
from arml.lab.hardware import CPU
from arml.lab.processes import join_processes
from arml.lab.run import Run
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
from arml.lab.train import train
from arml.lab.worlds import WORLDS

OFTEN: dict[str, Any] = {"steps": 10, "evaluate_every": 5, "record_every": 2, "checkpoint_every": 4, "every": 2}
EXACT: dict[str, Any] = {**OFTEN, "precision": "fp64", "network": "plain-8"}
SSL = SemiSupervised(batch_labelled=8, batch_unlabelled=16, **EXACT)
MLC = MultiLabel(batch_main=8, batch_aux=16, **{**EXACT, "network": "mlp-8"})
DG = Domains(batch_source=8, batch_target=4, **EXACT)
WORLD = replace(world_run(next(iter(WORLDS.values())), seed=0, method="agreement"), **OFTEN, precision="fp64")
RUNS: dict[str, Run] = {
    "s4l": replace(SSL, method="arml"),
    "s4l with noise": replace(SSL, method="arml_full"),
    "vat": replace(SSL, learner="vat", method="uniform"),
    "mean teacher": replace(SSL, learner="mean_teacher", method="uniform"),
    "targets": replace(MLC, method="agreement", optimizer="sgd"),
    "forkmerge": replace(MLC, learner="forkmerge", method="uniform"),
    "domains": replace(DG, method="gated_arml"),
    "baseline": replace(DG, learner="baseline", method="arml"),
    "jigen": replace(DG, learner="jigen", method="arml"),
    "world": replace(WORLD, batch_main=20, batch_aux=20),
}
"""In float64. Without BatchNorm, whose statistics are those of each process's own examples."""
MORE: dict[str, Run] = {
    "dropout": replace(MLC, dropout=0.5),
}
"""Runs that differ from those of one process."""


class StopError(Exception):
    """Ends training in the middle."""


def train_named(name: str, root: Path, *, stop_at: int | None = None, fail: int | None = None) -> None:
    """Trains a run below ``root``, from its checkpoint if there is one. A process may ``fail`` at the third step."""
    run = complete({**RUNS, **MORE}[name])
    parts = build(run, Folders(Path("data"), root / "cache"))
    after_step, steps = parts.learner.after_step, []

    def end_of_step(network: Any) -> None:
        after_step(network)
        steps.append(1)
        if len(steps) == stop_at:
            raise StopError
        if len(steps) == 3 and process_rank() == fail:
            (root / "failed").touch()
            raise ValueError("the data of this process are broken")

    parts.learner.after_step = end_of_step
    with suppress(StopError):
        train(run, parts, root / name, resume=True)


def main(root: Path, *words: str) -> None:
    """``words``: names of runs; ``NAME@7`` stops after 7 steps, ``NAME!1`` fails on process 1."""
    torch.set_num_threads(1)
    with join_processes(CPU):
        for word in words or tuple(RUNS):
            name, _, stop = word.partition("@")
            name, _, fail = name.partition("!")
            train_named(name, root, stop_at=int(stop) if stop else None, fail=int(fail) if fail else None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
