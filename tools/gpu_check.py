"""Compares training on an accelerator with training on the CPU, learner by learner, and measures speed and memory.

Same seeds, the same random numbers (drawn on the CPU), float64: over 10 steps, joint loss and weights agree to 1e-6 of
1 + their size. MPS has no float64: there, float32 and 5 %. Exits with 1 if a learner does not agree.
"""

import argparse
import sys
import tempfile
import time
import warnings
from dataclasses import replace
from pathlib import Path

import torch

from arml.bench.lab_steps import measure_step
from arml.bench.made_data import paper_run
from arml.bench.timing import Plan
from arml.lab.build import Folders, build, complete
from arml.lab.experiments.every_learner import every_learner
from arml.lab.hardware import CPU, choose_device, describe_device
from arml.lab.run import Run
from arml.lab.train import descend, losses_of

STEPS = 10


def main() -> int:
    """Checks every learner, then measures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:NUMBER or mps")
    device = choose_device(parser.parse_args().device)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if device.type == "cpu":
        say("torch finds no GPU here, or --device cpu was given: this compares the CPU with itself.")
    say(f"device {describe_device(device)}, torch {torch.__version__}")
    failed = [name for name, run in every_learner(STEPS, every=3).items() if not agrees(name, run, device)]
    say(f"{len(failed)} learners do not agree: {', '.join(failed)}" if failed else "all learners agree")
    measure(device)
    return 1 if failed else 0


def agrees(name: str, run: Run, device: torch.device) -> bool:
    """Whether ``run`` learns the same on ``device`` and on the CPU."""
    run = complete(replace(run, precision="fp32" if device.type == "mps" else "fp64"))
    tolerance = 0.05 if device.type == "mps" else 1e-6
    start = time.perf_counter()
    found, expected = train(run, device), train(run, CPU)
    largest = float(((found - expected).abs() / (1 + expected.abs())).max())
    fine = largest <= tolerance
    verdict = "agrees" if fine else "DIFFERS"
    say(f"  {name:<20} {verdict}  largest difference {largest:.1e}  {time.perf_counter() - start:.1f} s")
    return fine


def train(run: Run, device: torch.device) -> torch.Tensor:
    """The joint loss and the weights after every step."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps are not enough for anything to settle
        parts = build(run, Folders(Path("data"), Path(folder)), device=device)
        parts.generator = torch.Generator().manual_seed(1)  # on the CPU: other devices draw other numbers
        parts.network.train()
        rows = []
        for step in range(run.steps):
            joint = descend(parts, losses_of(parts, step))
            rows.append([float(joint), *(parts.reweighter.weights.values() if parts.reweighter is not None else ())])
    return torch.tensor(rows, dtype=torch.float64)


def measure(device: torch.device) -> None:
    """Prints the speed of steps of the paper's protocol with WRN-28-2; with few images on the CPU."""
    batch = 2 if device.type == "cpu" else None
    for learner in ("supervised", "s4l"):
        for precision in ("fp32", "bf16") if device.type == "cuda" else ("fp32",):
            run = replace(paper_run("ssl", learner, batch), precision=precision)
            one = measure_step(run, Plan(repeats=1 if batch else 20, device=str(device)))
            rate, sustained = 1000 * one.images / one.ms, one.gflops / one.ms
            say(
                f"  {learner:<10} {precision}  {one.images} images per step  {one.ms:.0f} ms  {rate:.0f} images per s  "
                f"{sustained:.2f} TFLOP/s  {one.peak_bytes / 1e9:.2f} GB  step / passes {one.ratio:.2f}"
            )


def say(line: str) -> None:
    """Prints at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
