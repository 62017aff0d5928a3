"""The truth of the worlds: seeds, tiers, and what every task says."""

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from arml.lab.models.network import Network
from arml.lab.worlds import WORLDS
from arml.lab.worlds.image_worlds import ImageTask, make_digits
from arml.lab.worlds.pools import TablePool, original_digits, original_mnist, yeast_genes
from arml.lab.worlds.table_worlds import TableTask, TableWorld, make_table
from arml.report.output.text import markdown
from arml.report.tables.suite_sheets import list_sheet

KINDS = {
    "all help",
    "some mislead",
    "all mislead",
    "noise",
    "one good",
    "twice",
    "other units",
    "loss scales",
    "pretext",
    "real",
}


def hashes(x: torch.Tensor) -> set[bytes]:
    return {row.numpy().tobytes() for row in x}


def tensors(data) -> list[torch.Tensor]:
    tasks = [data.main, *data.aux.values()]
    return [*(part for task in tasks for part in (task.x, task.target.values)), *data.validation, *data.test]


@pytest.mark.parametrize("name", WORLDS)
def test_a_seed_makes_one_world_and_another_seed_another(name):
    world = WORLDS[name]
    first, again, other = (world.make(seed) for seed in (3, 3, 4))
    assert all(torch.equal(a, b) for a, b in zip(tensors(first), tensors(again), strict=True))
    assert not torch.equal(first.test.x, other.test.x)
    assert tuple(first.aux) == (*world.helpful, *world.others)
    assert len(first.main.x) == world.labels
    assert hashes(first.main.x).isdisjoint(hashes(first.test.x)) or name.startswith("phishing")  # has equal rows
    for task in (first.main, *first.aux.values()):
        assert len(task.x) == len(task.target.values)
        assert bool(task.target.present.all())
        assert bool(task.x.isfinite().all())


def test_both_tiers_have_every_kind_and_the_numbers_of_tasks_differ():
    for tier in ("dev", "test"):
        worlds = [world for world in WORLDS.values() if world.tier == tier]
        assert {world.kind for world in worlds} == KINDS
        assert sum(world.kind == "real" for world in worlds) == 2
        counts = {len(world.helpful) + len(world.others) for world in worlds}
        assert {1, 2, 5, 13, 40} <= counts
        assert {world.network.split("-")[0] for world in worlds} - {"small"} == {"mlp", "plain"}
        assert {20, 300} <= {world.labels for world in worlds}


def test_the_tiers_share_no_example():
    for original, least in ((original_digits, 500), (original_mnist, 2500)):
        dev, test = (hashes(original(tier).x) for tier in ("dev", "test"))
        assert dev.isdisjoint(test)
        assert min(len(dev), len(test)) >= least
    genes = [yeast_genes(tier, main) for tier, main in (("dev", "Class4"), ("test", "Class3"))]
    dev, test = (hashes(torch.stack([pool.columns[f"x{n}"] for n in range(103)], dim=1)) for pool in genes)
    assert dev.isdisjoint(test)
    tables = {"dev": {"yeast", "tumours", "diabetes", "digits"}, "test": {"yeast", "mnist"}}
    tables["test"] |= {"segments", "cars", "phishing", "wine", "bananas", "polls"}
    for name, world in WORLDS.items():
        assert name.split("-")[0] in tables[world.tier]


def test_sources_show_the_right_the_wrong_or_a_random_digit():
    tasks = {"right": ImageTask(), "wrong": ImageTask(shift=3), "random": ImageTask(asks="random", amount=1000)}
    data = make_digits(tasks, "dev", True, 20, seed=0)
    images = original_mnist("dev")
    small = make_digits({"all": ImageTask(amount=10**6)}, "dev", True, 20, seed=0).aux["all"]
    assert len(small.x) == len(images.y)
    truth = {row.numpy().tobytes(): int(y) for row, y in zip(small.x, small.target.values, strict=True)}
    asked = {name: (task.target.values.long(), task) for name, task in data.aux.items()}
    known = {name: torch.tensor([truth[row.numpy().tobytes()] for row in task.x]) for name, (_, task) in asked.items()}
    assert torch.equal(asked["right"][0], known["right"])
    assert torch.equal(asked["wrong"][0], (known["wrong"] + 3) % 10)
    assert 0.05 < float((asked["random"][0] == known["random"]).float().mean()) < 0.15
    assert {task.head for task in data.aux.values()} == {"class"}
    assert data.main.target.values.long().bincount().tolist() == [2] * 10


def test_the_same_task_twice_has_the_same_examples():
    data = WORLDS["digits-same-task-twice-cnn"].make(0)
    assert torch.equal(data.aux["plain"].x, data.aux["plain again"].x)
    assert torch.equal(data.aux["plain"].target.values, data.aux["plain again"].target.values)


def test_pretext_tasks_have_heads_of_their_own_and_turns_are_right():
    data = WORLDS["digits-groups-help-turns-and-codes-do-not-mlp"].make(0)
    assert {name: task.head for name, task in data.aux.items()} == {name: name for name in data.aux}
    assert tuple(data.aux) == ("group", "turn", "code1", "code2", "code3")
    pool = hashes(make_digits({"group": ImageTask(asks="group", amount=10**6)}, "dev", True, 20, 0).aux["group"].x)
    turn = data.aux["turn"]
    upright = torch.stack(
        [row.reshape(8, 8).rot90(-int(k)) for row, k in zip(turn.x, turn.target.values, strict=True)]
    ).flatten(1)
    assert hashes(upright) <= pool


@pytest.mark.parametrize("is_flat", [True, False])
def test_views_are_noisy_images_and_the_plain_ones_with_a_loss_near_0(is_flat):
    tasks = {"views": ImageTask("noisy", "views", amount=200), "half": ImageTask("noisy", "views", scale=0.5)}
    views, half = make_digits(tasks, "dev", is_flat, 20, seed=0).aux.values()
    assert views.x.shape == views.target.values.shape == (200, *((64,) if is_flat else (1, 8, 8)))
    apart = views.x - views.target.values
    assert 0.1 < float(apart.std()) < 40 / 127.5
    pool = hashes(make_digits({"all": ImageTask(asks="views", amount=10**6)}, "dev", is_flat, 20, 0).aux["all"].x)
    assert hashes(views.target.values) <= pool

    network = Network(nn.Sequential(nn.Flatten(), nn.Linear(64, 8)), 8, {"class": 10})
    features, plain = network.features(views.x), network.features(views.target.values)
    loss = views.loss_of_features(network, features, views.target.values).detach()
    cosines = [torch.dot(a, b) / (a.norm() * b.norm()) for a, b in zip(features, plain, strict=True)]
    assert float(loss) == pytest.approx(1 - float(sum(cosines).detach()) / 200, abs=1e-5)
    assert 0 < float(loss) < 0.3
    halved = half.loss_of_features(network, features, views.target.values).detach()
    assert float(halved) == pytest.approx(0.5 * float(loss))
    # The plain view is what the noisy one should come near, not the other way round.
    constant = views.loss_of_features(network, features.detach(), views.target.values)
    assert not constant.requires_grad


def line(n=60, classes=("no", "yes")):
    """A table with a column that is the answer, and one that is not."""
    y = torch.arange(n).double() % max(2, len(classes)) if classes else torch.arange(n).double()
    return TablePool({"noise": (torch.arange(n).double() * 7) % 11, "answer": y + 0.5}, y, classes)


def table(tasks, pool):
    return make_table(TableWorld(lambda: pool, tested=20, validation=10), tasks, 10, 0)


def test_tasks_of_a_table_say_what_they_should():
    tasks = {
        "right": TableTask("main"),
        "wrong": TableTask("wrong"),
        "half": TableTask("main", noise=1.0),
        "twin": TableTask("twin", unit=100.0, natural_unit=10.0),
        "column": TableTask("column", column="noise"),
    }
    data = table(tasks, line())
    truth = data.aux["right"].target.values
    assert torch.equal((data.aux["right"].x[:, 0] > 0).float(), truth), "the only input left is the answer"
    assert torch.equal(data.aux["wrong"].target.values, 1 - truth)
    assert 0.2 < float((data.aux["half"].target.values == truth).float().mean()) < 0.8
    assert torch.equal((data.aux["twin"].target.values > 0).float(), truth)
    assert {name: task.head for name, task in data.aux.items()} == {
        "right": "class",
        "wrong": "class",
        "half": "class",
        "twin": "twin",
        "column": "column",
    }
    assert data.aux["column"].target.is_numeric
    assert len(data.main.x) == 10
    assert [len(data.validation.x), len(data.test.x), len(truth)] == [10, 20, 30]


def test_numbers_are_standardised_on_the_few_labels_and_turned_round_by_wrong_ones():
    data = table({"wrong": TableTask("wrong"), "right": TableTask("main")}, line(classes=()))
    assert float(data.main.target.values.mean()) == pytest.approx(0, abs=1e-6)
    assert float(data.main.target.values.std(correction=0)) == pytest.approx(1)
    assert torch.equal(data.aux["wrong"].target.values, -data.aux["right"].target.values)


def test_units_and_factors_change_the_loss_as_their_names_say():
    data = table({"twin": TableTask("twin", unit=100.0, natural_unit=10.0, scale=1e-3)}, line())
    twin, zeros = data.aux["twin"], torch.zeros(30, 1)
    assert float(twin.loss(zeros, twin.target.values)) == pytest.approx(1e-3 * 100**2)
    assert float(twin.in_natural_units().loss(zeros, twin.target.values)) == pytest.approx(100)


def test_the_page_lists_the_worlds():
    page = (Path(__file__).parents[3] / "docs" / "suite.md").read_text()
    rows = re.findall(r"^\|.*$", markdown([list_sheet([*WORLDS.values()])]), re.MULTILINE)
    assert len(rows) == 2 + len(WORLDS)
    assert "\n".join(rows) in page
