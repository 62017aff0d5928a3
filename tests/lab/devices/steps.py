"""Trains every learner for some steps on the second device and on the CPU; writes down both results, and what waits."""

import json
import sys
import tempfile
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas
import torch

sys.path.insert(0, str(Path(__file__).parent))
from second_device import DEVICE, SecondDevice, draw_on_device, waits

from arml.lab.build import Folders, complete
from arml.lab.build.settings import MAKERS
from arml.lab.build.skeleton import assemble
from arml.lab.data import draws, placement
from arml.lab.experiments.every_learner import every_learner
from arml.lab.run import Run
from arml.lab.train import Parts, descend, losses_of
from arml.sklearn import AuxiliaryClassifier, AuxiliaryRegressor, training

STEPS = 4


def every_run() -> dict[str, Run]:
    """One run per learner. Weights are updated at steps 0 and 3; FADA's last stage begins at step 2."""
    runs = {name: complete(run) for name, run in every_learner(STEPS, every=3).items()}
    more = {f"ssl s4l {method}": replace(runs["ssl s4l"], method=method) for method in ("agreement", "arml_full")}
    return runs | more


def train(parts: Parts) -> dict[str, list]:
    """Losses and weights after every step, and what waited for the device in steps that update no weights."""
    parts.network.train()
    found: dict[str, list] = {"numbers": [], "waits": []}
    for step in range(STEPS):
        updates = parts.reweighter is not None and parts.reweighter.update_due
        waits.clear()
        losses = losses_of(parts, step)
        joint = descend(parts, losses)
        found["waits"] += [] if updates or step == 0 else sorted(waits)  # constants are copied at the first step
        weights = {} if parts.reweighter is None else parts.reweighter.weights
        found["numbers"].append([float(joint), *weights.values()])
    return found


LOADED: dict[str, Any] = {}


def make(run: Run, device: torch.device, folder: Path) -> Parts:
    """As ``build`` makes them, but every data set is read once."""
    maker = MAKERS[run.setting]
    if run.setting not in LOADED:
        LOADED[run.setting] = maker.load(run, Folders(Path("data"), folder), lambda *_: None)
    parts = assemble(run, maker.contribute(run, LOADED[run.setting]), device)
    parts.generator = torch.Generator().manual_seed(1)
    return parts


def fit_estimators(device: torch.device, steps: int) -> list[list[float]]:
    """Predictions and weights of both estimators, trained on ``device``. Weights are updated at step 0 alone."""
    training.choose_device = lambda name: device
    rows = torch.randn(40, 3, generator=torch.Generator().manual_seed(0)).numpy()
    aux = pandas.DataFrame({"square": rows[:, 0] ** 2, "sign": rows[:, 1] > 0})
    small = {"hidden": 8, "networks": 2, "n_fits": 1, "dropout": 0.0, "steps": steps, "every": 100, "random_state": 0}
    numbers = []
    for estimator, y in ((AuxiliaryClassifier, rows[:, 0] > 0), (AuxiliaryRegressor, rows[:, 0] + rows[:, 1])):
        fitted = estimator("arml", **small, device="auto").fit(rows, y, aux=aux)
        numbers.append([*map(float, fitted.predict(rows)), *fitted.aux_weights_.values()])
    return numbers


def fit_on_device() -> dict[str, list]:
    """What the estimators learn there, and what waits once more with every step."""
    expected = fit_estimators(torch.device("cpu"), STEPS)
    with SecondDevice():
        waits.clear()
        numbers = fit_estimators(DEVICE, STEPS)
        few = Counter(waits)
        waits.clear()
        fit_estimators(DEVICE, 3 * STEPS)
    return {"expected": expected, "numbers": numbers, "waits": sorted((Counter(waits) - few).elements())}


def forgotten_device() -> dict[str, list[str]]:
    """What happens to a line without ``device=``, and to one that reads a number."""
    x = torch.zeros(3, device=DEVICE)
    waits.clear()
    try:
        found = str(x + torch.arange(3))
    except RuntimeError as error:
        found = str(error)
    return {"error": [found], "waits": [*waits, str(bool(x.any())), *waits]}


def main(output: str, *names: str) -> None:
    warnings.simplefilter("ignore")  # a few steps are not enough for anything to settle
    torch.set_num_threads(1)
    found = {}
    folder = Path(tempfile.mkdtemp())
    placement.free_memory = lambda device: 1e9
    for name, run in every_run().items():
        if names and name not in names:
            continue
        expected = train(make(run, torch.device("cpu"), folder))["numbers"]
        with SecondDevice():
            parts = make(run, DEVICE, folder)
            draws.torch = draw_on_device()
            found[name] = {"expected": expected, **train(parts)}
            draws.torch = torch
    found["estimators"] = fit_on_device()
    with SecondDevice():
        found["forgotten device"] = forgotten_device()
    Path(output).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
