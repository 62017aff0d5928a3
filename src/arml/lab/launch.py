"""From a run to its result: complete it, load its data, build its parts, train. Commands and sweeps all start here."""

import warnings
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from arml.lab.build import Folders, build, complete
from arml.lab.environment import data_folder
from arml.lab.fit import fit, is_simple
from arml.lab.folder_lock import lock_folder
from arml.lab.hardware import choose_device
from arml.lab.journal import Watch
from arml.lab.processes import join_processes, present_processes, wait_for_all
from arml.lab.run import Run
from arml.lab.run_folder import FAILURE, RECORD, is_done, write_whole
from arml.lab.runs_root import RunsRoot, open_root
from arml.lab.shortage import explain_shortages
from arml.lab.stopping import Stop
from arml.lab.trace import Record, read, result
from arml.lab.train import train

_READ: dict[Hashable, Any] = {}
"""The data that this process has read for one run after the other. A sweep starts new processes."""


def train_run(
    run: Run,
    out: Path | str = "runs",
    *,
    data_dir: Path | str | None = None,
    resume: bool = True,
    device: str = "auto",
    watch: Watch = lambda _: None,
) -> Record:
    """Trains ``run`` in a folder of its own below ``out`` and returns its result. A finished run is not repeated.

    Args:
        run: what to train, such as ``SemiSupervised(labels=50, method="arml")``.
        out: where the folder of the run is made; its name follows from the run. A URL that fsspec knows will do.
        data_dir: where data sets are; ``None``: the environment variable ARML_DATA, or ``data``.
        resume: continue from the last checkpoint, if there is one.
        device: where to train: auto, cpu, cuda, cuda:1, mps; auto is the best there is.
        watch: is shown every record as it is written.

    Returns:
        The last line of the record: test and validation errors, and the final weights.
    """
    run, root, place = complete(run), open_root(out), choose_device(device)
    with join_processes(place), hold_folder(root, run.name(), resume=resume) as folder:
        if is_done(folder):
            return result(read(folder / RECORD).records) or {}
        folders = Folders(data_folder() if data_dir is None else Path(data_dir), root.local / "cache")
        if is_simple(run):
            return fit(run, folders, folder, watch=watch)
        parts = build(run, folders, device=place)
        return train(run, parts, folder, resume=resume, watch=watch, after_checkpoint=lambda: root.push(run.name()))


@contextmanager
def hold_folder(root: RunsRoot, name: str, *, resume: bool) -> Iterator[Path]:
    """The folder of a run, locked and ready to train in. The first of several processes holds it for all."""
    folder = root.local / name
    if present_processes().rank > 0:
        wait_for_all()
        yield folder
        return
    with lock_folder(folder):
        begin(root, name, resume=resume)
        wait_for_all()
        yield folder


def begin(root: RunsRoot, name: str, *, resume: bool) -> None:
    """Brings the files of a run here if its folder is at a URL. The reason of an earlier failure goes."""
    root.pull(name)
    if not resume and not is_done(root.local / name):
        root.clear(name)
    (root.local / name / FAILURE).unlink(missing_ok=True)


def train_in_worker(
    run: Run, folder: Path, stop: Stop, *, root: RunsRoot, data_dir: Path, device: str = "auto"
) -> None:
    """Trains one of many runs in a process of its own, and continues from its checkpoint if there is one.

    Warnings go to a file beside the record: nobody could read them among those of other runs, below a progress bar.
    """
    with lock_folder(folder):
        begin(root, folder.name, resume=True)
        if is_done(folder):  # by another command, while this run was waiting
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            folders = Folders(data_dir, folder.parent / "cache", _READ)
            if is_simple(run):
                fit(run, folders, folder)
            else:
                with explain_shortages(folder):
                    parts = build(run, folders, device=choose_device(device))
                train(run, parts, folder, resume=True, stop=stop, after_checkpoint=lambda: root.push(folder.name))
        if caught:
            texts = dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught)
            write_whole(folder / "warnings.txt", ("\n".join(texts) + "\n").encode())
            root.push(folder.name)
