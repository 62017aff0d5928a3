"""Malformed inputs of every kind: a sentence and an exit code, or the input is left out; never a traceback."""

import gzip
import os
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import torch
from lab.data.original_formats import celeba_files, cifar_pickles, svhn_files
from lab.own_data import write_patients, write_shades
from report.made_records import lines_of, ssl_runs
from torture.commands import run
from torture.damage import change_lines, damage
from torture.kills import SHORT, TRAIN, records, reference

from arml.lab.run_kinds import SemiSupervised

MEMORY = 16 * 2**30
"""Bytes of address space: torch alone takes several of them."""
TIMEOUT = 120.0
QUICK = ["--steps", "2", "--evaluate-every", "2"]


class Witness:
    """Unpickling this makes a folder: if it is there, code of a file was run."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (self.path,)


def _spoil(rng: random.Random, path: Path, witness: Path) -> None:
    """Damages a file, puts hostile code in its place, or something that is no file."""
    content, kind = path.read_bytes(), rng.random()
    if kind < 0.85:
        path.write_bytes(damage(rng, content))
        return
    path.unlink()
    if kind < 0.9:
        path.write_bytes(pickle.dumps(Witness(str(witness)), protocol=rng.choice([0, 2, 4])))
    elif kind < 0.93:
        os.mkfifo(path)
    elif kind < 0.96:
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()


def bad_record(rng: random.Random, place: Path) -> list[str]:
    """One odd record among sound ones."""
    ssl_runs(place / "runs", seeds=1)
    path = place / "runs" / "odd" / rng.choice(["record.jsonl", "record.jsonl", "record.jsonl", "failure.txt"])
    path.parent.mkdir()
    path.write_bytes(change_lines(rng, lines_of(SemiSupervised(seed=7), 10.0, weights={"rotation": 1.0})))
    if rng.random() < 0.1:
        _spoil(rng, path, place / "witness")
    words = ["report", str(place / "runs"), "--out", str(place / "report"), "--figures", "0"]
    return words if rng.random() < 0.8 else ["labels", str(place / "runs")]


def bad_matlab(rng: random.Random, place: Path) -> list[str]:
    """A damaged file of SVHN."""
    _spoil(
        rng, svhn_files(place / "svhn", rows=2) / rng.choice(["train_32x32.mat", "test_32x32.mat"]), place / "witness"
    )
    return ["data", rng.choice(["check", "check", "fetch"]), "svhn", "--data-dir", str(place)]


def bad_pickle(rng: random.Random, place: Path) -> list[str]:
    """A damaged or hostile file of CIFAR-10."""
    _spoil(rng, cifar_pickles(place, rows=2) / "data_batch_1", place / "witness")
    return ["data", "check", "cifar10", "--data-dir", str(place)]


def bad_lists(rng: random.Random, place: Path) -> list[str]:
    """Damaged lists of CelebA."""
    folder = celeba_files(place / "celeba", rows=6, size=(18, 22))
    _spoil(rng, folder / rng.choice(["list_attr_celeba.txt", "list_eval_partition.txt"]), place / "witness")
    return ["data", "check", "celeba", "--data-dir", str(place)]


def bad_image(rng: random.Random, place: Path) -> list[str]:
    """A damaged image in a folder of domains."""
    folder = write_shades(place)
    _spoil(rng, folder / "ink" / "dark" / "3.png", place / "witness")
    words = ["train", "dg", "--folders", str(folder), "--target", "clay", "--network", "small-4", *QUICK]
    return [*words, "--image-size", "8", "--shots", "2", "--out", str(place / "runs")]


def bad_table(rng: random.Random, place: Path) -> list[str]:
    """A damaged table, plain or compressed."""
    path = write_patients(place)
    if rng.random() < 0.5:
        (place / "patients.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
        path = place / "patients.csv.gz"
    _spoil(rng, path, place / "witness")
    words = ["train", "mlc", "--table", str(path), "--main", "ill", "--aux", "third", "--network", "mlp-8", *QUICK]
    return [*words, "--labels", "10", "--out", str(place / "runs")]


def bad_weights(rng: random.Random, place: Path) -> list[str]:
    """A damaged or hostile file of weights."""
    torch.save({"fc.weight": torch.zeros(3, 3), "conv1.weight": torch.randn(4, 3)}, place / "a.pt")
    _spoil(rng, place / "a.pt", place / "witness")
    words = ["train", "mlc", "--network", "mlp-8", "--weights", str(place / "a.pt"), *QUICK]
    return [*words, "--out", str(place / "runs")]


def bad_words(rng: random.Random, place: Path) -> list[str]:
    """Options with values that make no sense."""
    options = ["--steps", "--seed", "--lr", "--every", "--labels", "--network", "--method", "--lr-drop-at", "--window"]
    options += ["--aux-scale", "--bn-momentum", "--weight-decay", "--batch-main", "--on-nan", "--dataset", "--main"]
    values = ["nan", "inf", "-1", "0", "1e308", "99999999999999999999", "", "a", "-inf", "\x1b[2J", "wrn-0-0", "1,2"]
    words = [word for option in rng.sample(options, rng.randint(1, 3)) for word in (option, rng.choice(values))]
    return ["train", "mlc", "--network", "mlp-8", *QUICK, *words, "--out", str(place / "runs")]


KINDS: dict[str, Callable[[random.Random, Path], list[str]]] = {
    kind.__name__: kind
    for kind in (bad_record, bad_matlab, bad_pickle, bad_lists, bad_image, bad_table, bad_weights, bad_words)
}


def feed(rng: random.Random, place: Path) -> str:
    """Gives a command a malformed input of some kind."""
    name = rng.choice(list(KINDS))
    words = KINDS[name](rng, place)
    answer = run(words, place / "log", timeout=TIMEOUT, memory=MEMORY)
    if (place / "witness").exists():
        return f"{name}: code was executed"
    fault = "hangs" if answer.code == -9 else answer.fault(0, 1, 2)
    return f"{name}: {fault}" if fault else ""


def resume_from_damage(rng: random.Random, place: Path) -> str:
    """Damages a checkpoint and resumes: it is refused with a sentence, or does no harm."""
    words = [*TRAIN["mlc"], *SHORT]
    wanted, _ = reference(words, place, "mlc")
    shutil.copytree(place.parent / "reference" / "mlc", place / "runs")
    (folder,) = (path.parent for path in (place / "runs").glob("*/record.jsonl"))
    (folder / "done").unlink()
    path = rng.choice(sorted(folder.glob("checkpoint*.pt")))
    path.write_bytes(damage(rng, path.read_bytes()))
    answer = run([*words, "--out", str(place / "runs"), "--resume"], place / "log", timeout=TIMEOUT, memory=MEMORY)
    if answer.fault(0, 1):
        return answer.fault(0, 1)
    if answer.code == 0 and records(place / "runs") != wanted:
        return "a damaged checkpoint was used, and the record is another"
    return ""
