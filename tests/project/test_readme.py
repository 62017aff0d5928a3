"""The README's code is run as it stands."""

import re
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(), flags=re.DOTALL)


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
    assert len(BLOCKS[0].strip().splitlines()) <= 15
    exec(BLOCKS[0], user_code())
    assert re.match(r"\{'rotation': [\d.]+, 'exemplar': [\d.]+\}", capsys.readouterr().out)


def test_the_whole_script_moves_weight_to_the_task_that_helps(capsys):
    namespace: dict = {}
    exec(BLOCKS[1], namespace)
    weights = namespace["reweighter"].weights
    assert weights["same"] > 2 * weights["other"]
    assert capsys.readouterr().out.startswith("0 {'same'")
    exec(BLOCKS[2], namespace)
    assert namespace["noise"].active is not namespace["reweighter"].converged


def test_the_estimator_learns_from_a_table():
    rows = np.random.default_rng(0).normal(size=(30, 4))
    y = np.where(np.arange(30) < 10, rows[:, 0] > 0, np.nan)
    namespace = {"X": rows, "y": y, "other_columns": rows[:, :2] > 0, "X_test": rows[:5]}
    exec(BLOCKS[3], namespace)
    assert set(namespace["model"].aux_weights_) == {"aux0", "aux1"}
    assert len(BLOCKS) == 4
