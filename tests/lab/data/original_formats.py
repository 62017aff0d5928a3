"""Tiny data sets in the original formats."""

import pickle
import struct
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image
from scipy.io import savemat

PICKLES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


class Python2Pickler(pickle._Pickler):
    """Writes text and bytes as Python 2 wrote its strings, so that the files look like the originals."""

    dispatch: ClassVar = dict(pickle._Pickler.dispatch)

    def save_string(self, text):
        raw = text.encode("latin1") if isinstance(text, str) else text
        short = len(raw) < 256
        self.write(
            pickle.SHORT_BINSTRING + bytes([len(raw)]) if short else pickle.BINSTRING + struct.pack("<i", len(raw))
        )
        self.write(raw)

    dispatch[str] = dispatch[bytes] = save_string


def write_pickle(path: Path, content: object) -> None:
    """Protocol 2, with the name that numpy 1 gave its module."""
    with path.open("wb") as file:
        Python2Pickler(file, protocol=2).dump(content)
    path.write_bytes(path.read_bytes().replace(b"numpy._core.multiarray", b"numpy.core.multiarray"))


def cifar_rows(seed: int, rows: int = 3) -> tuple[np.ndarray, list[int]]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (rows, 3072), dtype=np.uint8), rng.integers(0, 10, rows).tolist()


def cifar_pickles(root: Path, rows: int = 3) -> Path:
    """All six files with different content, the first one with seed 0."""
    folder = root / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for seed, name in enumerate(PICKLES):
        data, labels = cifar_rows(seed, rows)
        write_pickle(folder / name, {"batch_label": name, "labels": labels, "data": data})
    return folder


def cifar_binary(root: Path, rows: int = 3) -> Path:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir(parents=True)
    for seed, name in enumerate(PICKLES):
        data, labels = cifar_rows(seed, rows)
        np.column_stack([np.array(labels, dtype=np.uint8), data]).tofile(folder / f"{name}.bin")
    return folder


def svhn_arrays(seed: int, rows: int = 12) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = (np.arange(rows, dtype=np.uint8) % 10 + 1)[:, None]
    return {"X": rng.integers(0, 256, (32, 32, 3, rows), dtype=np.uint8), "y": labels}


def svhn_files(folder: Path, rows: int = 12) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for seed, part in enumerate(("train", "test")):
        savemat(folder / f"{part}_32x32.mat", svhn_arrays(seed, rows), do_compression=True)
    return folder


CELEBA_NAMES = [f"Attribute_{i}" for i in range(40)]


def celeba_attributes(rows: int) -> np.ndarray:
    """Image i has attribute k if i + k can be divided by 3."""
    return np.add.outer(np.arange(rows), np.arange(40)) % 3 == 0


def celeba_files(folder: Path, rows: int = 6, size: tuple[int, int] = (178, 218), nested: bool = False) -> Path:
    """Images of one colour each, (10 i, 100, 200), below a white edge; by turns for training, validation and test."""
    anno, evaluation, img = (folder / name if nested else folder for name in ("Anno", "Eval", "Img"))
    for place in (anno, evaluation, img / "img_align_celeba"):
        place.mkdir(parents=True, exist_ok=True)
    names = [f"{i + 1:06}.jpg" for i in range(rows)]
    lines = [" ".join(f"{v:2}" for v in row) for row in np.where(celeba_attributes(rows), 1, -1)]
    described = [f"{name} {line}" for name, line in zip(names, lines, strict=True)]
    (anno / "list_attr_celeba.txt").write_text("\n".join([str(rows), " ".join(CELEBA_NAMES) + " ", *described]) + "\n")
    parts = [f"{name} {i % 3}" for i, name in enumerate(names)]
    (evaluation / "list_eval_partition.txt").write_text("\n".join(parts) + "\n")
    for i, name in enumerate(names):
        image = Image.new("RGB", size, (10 * i, 100, 200))
        # The crop begins 20 of 218 pixels below the edge; half of it stays white, to be cut away.
        image.paste((255, 255, 255), (0, 0, size[0], size[1] // 22))
        image.save(img / "img_align_celeba" / name, quality=95)
    return folder
