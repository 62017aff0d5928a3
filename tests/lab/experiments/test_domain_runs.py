"""Which runs make the tables over domains."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from lab.parts import make
from PIL import Image

from arml.lab.data import pacs
from arml.lab.experiments.domain_runs import Table, cpu, default_table, paper
from arml.lab.run import Line
from arml.lab.train import descend, losses_of


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


def test_the_comparison_with_a_misleading_source_has_an_oracle():
    run = cpu("pacs_misleading")
    assert (run.target, run.image_size, run.steps, run.select) == ("photo", 24, 400, "last")
    lines = {made.line() for made in default_table(run).runs(run, seeds=1)}
    assert Line("jt", "uniform", "without misleading") in lines


def write_noise(folder):
    """Three images of noise per class: without structure, but with the contrast of real ones."""
    draw = np.random.default_rng(0)
    for domain, category, number in product(pacs.DOMAINS, pacs.CLASSES, range(3)):
        (folder / domain / category).mkdir(parents=True, exist_ok=True)
        pixels = draw.integers(0, 256, (33, 33, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(folder / domain / category / f"{number}.png")


def largest_change(run, folder):
    """The largest change of a weight from one of three steps to the next; the first is from equal weights."""
    parts = make(run, folder)
    path = [[1.0, 1.0, 1.0]]
    for step in range(3):
        descend(parts, losses_of(parts, step))
        path.append([*parts.reweighter.weights.values()])
    return float(torch.tensor(path).diff(dim=0).abs().max())


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:resnet18 starts from nothing")
def test_weights_of_the_paper_preset_do_not_jump_from_corner_to_corner(tmp_path):
    """The gradients of a ResNet18 are large: with ARML's usual step size, an update moves a weight by 0.75."""
    write_noise(tmp_path / "PACS")
    run = replace(paper("pacs"), image_size=33, batch_source=14, shots=1, batch_target=7, method="arml")
    assert largest_change(replace(run, weight_lr=None), tmp_path) > 0.7
    assert largest_change(run, tmp_path) < 0.3
