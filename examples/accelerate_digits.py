"""Digits from few labels with Accelerate: prepare, accumulate, save and load the state.

Run it with: python examples/accelerate_digits.py      (and again with --resume, from the last checkpoint)
Two processes: ACCELERATE_USE_CPU=1 torchrun --nproc_per_node 2 examples/accelerate_digits.py
Needs: pip install 'arml[lab]' accelerate
"""

import argparse
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from arml import Recorder, Reweighter

TASKS = {"even": [0, 2, 4, 6, 8], "at_least_five": [5, 6, 7, 8, 9], "has_loop": [0, 6, 8, 9]}
NUM_TEST, NUM_LABELS = 900, 20


class Network(nn.Module):
    """A trunk that all tasks share, and one head per task."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU())
        self.heads = nn.ModuleDict({"main": nn.Linear(64, 10), **{task: nn.Linear(64, 2) for task in TASKS}})

    def forward(self, few: Tensor, many: Tensor) -> dict[str, Tensor]:
        """Answers of the main head for the few labelled images, of the others for many."""
        features = self.trunk(many)
        return {"main": self.heads["main"](self.trunk(few)), **{task: self.heads[task](features) for task in TASKS}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--out", type=Path, default=Path("runs/accelerate_digits"))
    parser.add_argument("--resume", action="store_true", help="from the last checkpoint below --out")
    options = parser.parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=2)
    set_seed(0)
    pixels, target = load_digits(return_X_y=True)
    order = torch.randperm(len(target))
    images, digits = torch.tensor(pixels / 16).float()[order], torch.tensor(target)[order]
    few, network = slice(NUM_TEST, NUM_TEST + NUM_LABELS), Network()
    reweighter = Reweighter(tasks=list(TASKS), shared=network.trunk)
    recorder = Recorder(options.out, reweighter, main="digit", settings={"labels": NUM_LABELS})
    accelerator.register_for_checkpointing(reweighter, recorder)
    loader = DataLoader(TensorDataset(images[NUM_TEST:], digits[NUM_TEST:]), batch_size=32, shuffle=True)
    model, optimizer, loader = accelerator.prepare(network, torch.optim.Adam(network.parameters(), lr=0.003), loader)
    start = 0
    if options.resume:
        accelerator.load_state(str(options.out / "checkpoint"))
        start = reweighter.steps // len(loader)
    for epoch in range(start, options.epochs):
        for x, y in loader:
            with accelerator.accumulate(model):
                answers = model(images[few].to(x.device), x)
                labels = {task: torch.isin(y, y.new_tensor(members)).long() for task, members in TASKS.items()}
                aux = {task: cross_entropy(answers[task], labels[task]) for task in TASKS}
                accelerator.backward(reweighter(cross_entropy(answers["main"], digits[few].to(x.device)), aux))
                optimizer.step()
                optimizer.zero_grad()
        accelerator.save_state(str(options.out / "checkpoint"))
        accelerator.print(f"epoch {epoch + 1}: {reweighter.weights}")
    with torch.no_grad():
        tested = images[:NUM_TEST].to(accelerator.device)
        wrong = network(tested, tested)["main"].argmax(1).cpu() != digits[:NUM_TEST]
    recorder.finish(found := {"error": 100 * wrong.float().mean().item()})
    accelerator.print(f"error {found['error']:.1f} %")


if __name__ == "__main__":
    main()
