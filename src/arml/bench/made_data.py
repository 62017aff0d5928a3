"""Data of the shapes that the paper's runs have, drawn at random: speed does not depend on what images show."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from arml.lab.build import domains, multi_label, semi_supervised
from arml.lab.build.settings import MAKERS
from arml.lab.build.skeleton import assemble
from arml.lab.data import Dataset, Images, Scale
from arml.lab.data.domain_set import Domain
from arml.lab.data.target_splits import FewLabels
from arml.lab.data.targets import Examples, Target
from arml.lab.hardware import CPU
from arml.lab.run import Run
from arml.lab.settings import SETTINGS
from arml.lab.train import Parts

N = 1000
"""Training examples: more would take memory, and no step would notice."""
CLASSES, DOMAINS, ATTRIBUTES = 7, ("target", "first", "second", "third"), 40
LearnerName: TypeAlias = str


def paper_run(setting: str, learner: LearnerName, batch: int | None) -> Run:
    """A run of the paper's protocol; ``batch``: other numbers of examples per step than the paper's."""
    dataset = {"ssl": "cifar10", "mlc": "celeba", "dg": "pacs"}[setting]
    run = SETTINGS[setting].presets["paper"](dataset)
    known: dict[str, Any] = {"learner": learner, "labels": 100} if setting != "dg" else {"learner": learner}
    known |= {"target": DOMAINS[0]} if setting == "dg" else {"main": "0"} if setting == "mlc" else {}
    if batch is not None:
        sizes = [name for name in vars(run) if name.startswith("batch_") or name == "supervised_batch"]
        known |= dict.fromkeys(sizes, batch)
    return MAKERS[setting].complete(replace(run, **known))  # type: ignore[no-any-return]


def make_parts(run: Run, device: torch.device = CPU) -> Parts[Any]:
    """Everything ``run`` trains with, on made data."""
    return assemble(run, MAKERS[run.setting].contribute(run, MADE[run.setting](run)), device)


def _pixels(count: int, size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, 3, size, size), dtype=torch.uint8, generator=generator)


def _images(_: Run) -> semi_supervised.Loaded:
    images = Images(_pixels(N, 32), torch.arange(N) % 10)
    return semi_supervised.Loaded(Dataset("made", images, images, 10), Scale())


def _attributes(run: Any) -> multi_label.Loaded:
    x, names = _pixels(N, run.image_size), [str(number) for number in range(ATTRIBUTES)]
    targets = {name: Target((torch.arange(N) % 2).float(), ("no", "yes")) for name in names}
    rows = torch.arange(N)
    few = FewLabels(main=rows[:100], aux=rows[:-200], validation=rows[-200:-100], test=rows[-100:])
    others = {name: target for name, target in targets.items() if name != run.main}
    return multi_label.Loaded(Examples("made", targets, lambda _: x), targets[run.main], others, few)


def _domains(run: Any) -> domains.Loaded:
    y, rows = torch.arange(140) % CLASSES, torch.arange(140)
    made = {name: Domain(name, _pixels(140, run.image_size), y, rows[:100], rows[100:], rows) for name in DOMAINS}
    target = made.pop(DOMAINS[0])
    return domains.Loaded([str(number) for number in range(CLASSES)], target, made, rows[:14])


MADE: dict[str, Callable[[Any], Any]] = {"ssl": _images, "mlc": _attributes, "dg": _domains}
