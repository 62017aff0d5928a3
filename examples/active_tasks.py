"""What a loop saves by not computing losses that no longer count.

Thirty-six auxiliary tasks on digits: six ask for a property of the digit, thirty for the toss of a coin. Gated ARML
switches tasks off while it learns, and the auxiliary part fades out after two thirds of the run. Three loops are timed:
fixed weights, learned weights, and learned weights where only `reweighter.active_tasks` are computed.

Run it with: python examples/active_tasks.py
Needs: pip install arml scikit-learn
"""

import argparse
import statistics
import time

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy

from arml import GatedARML, LinearFade, Reweighter, Uniform

RELATED = {"even": [0, 2, 4, 6, 8], "five_up": [5, 6, 7, 8, 9], "loop": [0, 6, 8, 9], "prime": [2, 3, 5, 7],
           "round": [0, 3, 6, 8, 9], "straight": [1, 4, 7]}  # fmt: skip
TASKS = [*RELATED, *(f"coin_{i}" for i in range(30))]


def train(method: str, steps: int, seed: int) -> tuple[float, float]:
    """Seconds of processor time, and the error on test images in %."""
    torch.manual_seed(seed)
    pixels, target = load_digits(return_X_y=True)
    order = torch.randperm(len(target))
    images, digits = torch.tensor(pixels / 16).float()[order], torch.tensor(target)[order]
    labels = {task: torch.isin(digits, torch.tensor(members)).long() for task, members in RELATED.items()}
    labels |= {task: torch.randint(2, digits.shape) for task in TASKS if task not in RELATED}
    trunk = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU())
    heads = nn.ModuleDict({"main": nn.Linear(64, 10)})
    for task in TASKS:  # a head with a layer of its own: what a task costs
        heads[task] = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2))
    fixed = method == "fixed weights"
    fade = None if fixed else LinearFade(until=0.667, total=steps)
    reweighter = Reweighter(Uniform() if fixed else GatedARML(), TASKS, trunk, fade=fade)
    optimizer = torch.optim.Adam([*trunk.parameters(), *heads.parameters()], lr=0.003)
    start = time.process_time()
    for _ in range(steps):
        rows = torch.randint(920, len(images), (64,))
        main = cross_entropy(heads["main"](trunk(images[900:920])), digits[900:920])
        needed = reweighter.active_tasks if method == "learned, skipping" else TASKS
        features = trunk(images[rows]) if needed else None
        loss = reweighter(main, {task: cross_entropy(heads[task](features), labels[task][rows]) for task in needed})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    seconds = time.process_time() - start
    with torch.no_grad():
        wrong = heads["main"](trunk(images[:900])).argmax(1) != digits[:900]
    return seconds, 100 * wrong.float().mean().item()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ways = ("fixed weights", "learned", "learned, skipping")
    found: dict[str, list[tuple[float, float]]] = {way: [] for way in ways}
    for seed in range(options.seeds):
        for way in ways:
            found[way].append(train(way, options.steps, seed))
    unit = statistics.median(seconds for seconds, _ in found["fixed weights"])
    for way, runs in found.items():
        ratios = sorted(seconds / unit for seconds, _ in runs)
        error = statistics.mean(error for _, error in runs)
        spread = f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(f"{way:18} {spread} of the time of fixed weights, error {error:.1f} %, n = {len(runs)}")


if __name__ == "__main__":
    main()
