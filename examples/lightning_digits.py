"""Digits from few labels with Lightning; auxiliary labels of all images help, or do not.

Run it with: python examples/lightning_digits.py && arml report runs/lightning_digits
Needs: pip install 'arml[lab]' lightning
"""

import argparse
from typing import Any

import torch
from lightning.pytorch import LightningModule, Trainer, seed_everything
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from arml import Agreement, Fixed, Method, Recorder, Reweighter, Uniform
from arml.integrations.lightning import ARMLCallback

RELATED = {"even": [0, 2, 4, 6, 8], "at_least_five": [5, 6, 7, 8, 9], "has_loop": [0, 6, 8, 9]}
TASKS = [*RELATED, "coin"]
METHODS: dict[str, Method[Any]] = {"main only": Fixed([0] * 4), "uniform": Uniform(), "agreement": Agreement()}


def load(seed: int) -> tuple[Tensor, Tensor]:
    """Images, and a column of labels for the digit and for each task; the first rows are for testing."""
    pixels, digits = load_digits(return_X_y=True)
    order = torch.randperm(len(digits), generator=torch.Generator().manual_seed(seed))
    images, digits = torch.tensor(pixels / 16).float()[order], torch.tensor(digits)[order]
    related = [torch.isin(digits, torch.tensor(members)).long() for members in RELATED.values()]
    return images, torch.stack([digits, *related, torch.randint(2, digits.shape)], dim=1)


class Digits(LightningModule):
    def __init__(self, method: Method[Any], few: tuple[Tensor, Tensor]) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU())
        self.heads = nn.ModuleDict({"main": nn.Linear(64, 10), **{task: nn.Linear(64, 2) for task in TASKS}})
        self.reweighter = Reweighter(method, tasks=TASKS, shared=self.trunk)
        self.few = few

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Any:
        images, labels = self.few
        main = cross_entropy(self.heads["main"](self.trunk(images.to(self.device))), labels[:, 0].to(self.device))
        features = self.trunk(batch[0])
        aux = {task: cross_entropy(self.heads[task](features), batch[1][:, 1 + i]) for i, task in enumerate(TASKS)}
        return self.reweighter(main, aux)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.003)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", default="runs/lightning_digits")
    parser.add_argument("--precision", default="32-true", help="such as bf16-mixed")
    options = parser.parse_args()
    for seed in range(options.seeds):
        for name, method in METHODS.items():
            seed_everything(seed, verbose=False)
            images, labels = load(seed)
            module = Digits(method, (images[900:920], labels[900:920]))
            settings: dict[str, str | int] = {"method": name, "seed": seed, "labels": 20}
            recorder = Recorder(options.out, module.reweighter, main="digit", settings=settings, agreement=True)
            callbacks = [ARMLCallback(module.reweighter, recorder)]
            off = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
            silent: dict[str, Any] = dict.fromkeys(off, False)
            trainer = Trainer(max_steps=options.steps, precision=options.precision, callbacks=callbacks, **silent)
            trainer.fit(module, DataLoader(TensorDataset(images[900:], labels[900:]), batch_size=64, shuffle=True))
            with torch.no_grad():
                wrong = module.heads["main"](module.trunk(images[:900])).argmax(1) != labels[:900, 0]
            recorder.finish({"error": 100 * wrong.float().mean().item()})
            print(f"{name}, seed {seed}: error {100 * wrong.float().mean():.1f} %, weights {module.reweighter.weights}")


if __name__ == "__main__":
    main()
