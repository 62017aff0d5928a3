"""The code of the README and of the quick start is run as it stands."""

import re
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), flags=re.DOTALL)


FIRST = blocks("README.md")
QUICK_START = blocks("docs/quickstart.md")


def user_code() -> dict:
    """What a user of the first example has: a model, data, an optimiser and two auxiliary losses."""
    model = nn.Sequential(OrderedDict(trunk=nn.Linear(4, 8), squash=nn.Tanh(), head=nn.Linear(8, 3)))
    return {
        "F": F,
        "model": model,
        "loader": [(torch.randn(6, 4), torch.randint(0, 3, (6,))) for _ in range(30)],
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "rotation_loss": lambda model, x: model(-x).square().mean(),
        "exemplar_loss": lambda model, x: (model(x) - model(x + 0.1)).square().mean(),
    }


def test_the_first_loop_runs_and_is_short(capsys):
    assert len(FIRST) == 1
    assert len(FIRST[0].strip().splitlines()) <= 15
    assert "Reweighter(tasks=[" in FIRST[0]
    exec(FIRST[0], user_code())
    assert re.match(r"\{'rotation': [\d.]+, 'exemplar': [\d.]+\}", capsys.readouterr().out)


def test_the_whole_script_moves_weight_to_the_task_that_helps(capsys):
    namespace: dict = {}
    exec(QUICK_START[1], namespace)
    weights = namespace["reweighter"].weights
    assert weights["same"] > weights["other"] + 0.1
    assert capsys.readouterr().out.startswith("0 {'same'")
    exec(QUICK_START[2], namespace)
    assert namespace["noise"].active is not namespace["reweighter"].converged


def test_the_estimator_learns_from_a_table():
    rows = np.random.default_rng(0).normal(size=(30, 4))
    y = np.where(np.arange(30) < 10, rows[:, 0] > 0, np.nan)
    namespace = {"X": rows, "y": y, "other_columns": rows[:, :2] > 0, "X_new": rows[:5]}
    exec(QUICK_START[3], namespace)
    assert set(namespace["model"].aux_weights_) == {"aux0", "aux1"}


def test_the_quick_start_runs():
    assert len(QUICK_START) == 4
    exec(QUICK_START[0], user_code())


def test_the_readme_takes_two_minutes():
    """At 250 words per minute; code, figures and addresses of links are not read word by word."""
    text = re.sub(r"```.*?```", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(re.findall(r"[A-Za-z][\w'-]*", re.sub(r"\]\([^)]*\)", "]", text))) <= 500
