"""From a run to its result: complete it, load its data, build its parts, train. Commands and sweeps all start here."""

import warnings
from pathlib import Path

from arml.lab.build import Folders, build, complete
from arml.lab.environment import data_folder
from arml.lab.fit import fit, is_simple
from arml.lab.run import Run, is_done
from arml.lab.trace import Record, read, result
from arml.lab.train import Watch, train


def train_run(
    run: Run,
    out: Path | str = "runs",
    *,
    data_dir: Path | str | None = None,
    resume: bool = True,
    watch: Watch = lambda _: None,
) -> Record:
    """Trains ``run`` in a folder of its own below ``out`` and returns its result. A finished run is not repeated.

    Args:
        run: what to train, such as ``SemiSupervised(labels=50, method="arml")``.
        out: where the folder of the run is made; its name follows from the run.
        data_dir: where data sets are; ``None``: the environment variable ARML_DATA, or ``data``.
        resume: continue from the last checkpoint, if there is one.
        watch: is shown every record as it is written.

    Returns:
        The last line of the record: test and validation errors, and the final weights.
    """
    run = complete(run)
    folder = Path(out) / run.name()
    if is_done(folder):
        return result(read(folder / "record.jsonl").records) or {}
    folders = Folders(data_folder() if data_dir is None else Path(data_dir), Path(out) / "cache")
    return _train_or_fit(run, folders, folder, resume=resume, watch=watch)


def _train_or_fit(run: Run, folders: Folders, folder: Path, *, resume: bool, watch: Watch = lambda _: None) -> Record:
    if is_simple(run):
        return fit(run, folders, folder, watch=watch)
    return train(run, build(run, folders), folder, resume=resume, watch=watch)


def train_in_worker(run: Run, folder: Path, *, data_dir: Path) -> None:
    """Trains one of many runs in a process of its own, and continues from its checkpoint if there is one.

    Warnings go to a file beside the record: nobody could read them among those of other runs, below a progress bar.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        _train_or_fit(run, Folders(data_dir, folder.parent / "cache"), folder, resume=True)
    if caught:
        texts = dict.fromkeys(f"{warning.category.__name__}: {warning.message}" for warning in caught)
        (folder / "warnings.txt").write_text("\n".join(texts) + "\n")
