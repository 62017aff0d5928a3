"""Records written by hand, in the form `arml train` writes them, with numbers that are simple functions of the seed."""

import json
from dataclasses import asdict
from pathlib import Path

from arml.lab.run import Run
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
from arml.lab.trace import Recorded
from arml.report.charts.chart import Lines, Panel, Series

ENVIRONMENT = {"arml": "0.1.0", "torch": "2.13.0", "python": "3.11.7", "system": "Linux", "processor": "a processor"}


def lines_of(
    run: Run, error=None, *, weights=None, agreement=0.5, cosine=None, validation=5.0, steps=(25, 50), measured=None
) -> list[dict]:
    """Records of a run: weights go straight from 1 to what they end with; without an error it is unfinished."""
    weights = weights or {}
    lines = [{"setting": run.setting, "run": asdict(run), "environment": ENVIRONMENT}]
    for i, step in enumerate(steps, start=1):
        now = {task: 1 + (weight - 1) * i / len(steps) for task, weight in weights.items()}
        agreements = agreement if isinstance(agreement, dict) else dict.fromkeys(weights, agreement)
        seen = {"step": step, "losses": {"main": 1.0, **dict.fromkeys(weights, 1.0)}}
        cosines = {} if cosine is None else {"cosine": dict.fromkeys(weights, cosine)}
        lines.append(seen | ({"weights": now, "agreement": agreements, **cosines} if weights else {}))
    if error is not None:
        found = {"validation_error": validation, "test_error": error, "test_error_last": error, **(measured or {})}
        lines.append({"step": steps[-1], "validation_error": validation})
        lines.append({"step": steps[-1], **found, "weights": weights})
    return lines


def write(root: Path, run: Run, error=None, **recorded) -> Path:
    """The folder of a run, below ``root``."""
    folder = root / run.name()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "record.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines_of(run, error, **recorded)))
    if error is not None:
        (folder / "done").touch()
    return folder


def make_recorded(error=None, *, run=None, validation=5.0, weights=None, **fields) -> Recorded:
    """A record as it is read; ``fields`` are those of a semi-supervised run."""
    run = run or SemiSupervised(**fields)
    return Recorded(run, lines_of(run, error, validation=validation, weights=weights)[1:], ENVIRONMENT)


def ssl_runs(root: Path, *, seeds=3, labels=(50,), names=("rotation", "exemplar")) -> None:
    """Main only, uniform, ARML and gated ARML. Errors: 20, 18, 15 and 16 at 50 labels, less with more labels."""
    first, second = names
    for count in labels:
        for seed in range(seeds):
            fall = 5 * (count / 50 - 1) ** 0.5 if count >= 50 else -5 * (50 / count - 1) ** 0.5
            shift = 0.5 * seed - fall
            base = {"seed": seed, "labels": count}
            equal = {first: 1.0, second: 1.0}
            learned = {first: 0.05 + 0.01 * seed, second: 1.95 - 0.01 * seed}
            write(root, SemiSupervised(learner="supervised", method="uniform", **base), 20 + shift)
            write(root, SemiSupervised(method="uniform", **base), 18 + shift, weights=equal)
            write(root, SemiSupervised(method="arml", **base), 15 + shift + 0.1 * seed, weights=learned)
            write(root, SemiSupervised(method="gated_arml", **base), 16 + shift, weights=learned)


def mlc_runs(root: Path, *, mains=("Class1", "Class2"), tasks=12, seeds=2) -> None:
    """ARML and uniform on yeast with weights that fall from task to task."""
    for main in mains:
        for seed in range(seeds):
            names = [f"Class{k}" for k in range(1, tasks + 2) if f"Class{k}" != main]
            learned = {name: 2 - 2 * k / (tasks - 1) + 0.01 * seed for k, name in enumerate(names)}
            run = {"main": main, "seed": seed}
            write(root, MultiLabel(method="arml", **run), 30.0 + seed, weights=learned)
            write(root, MultiLabel(method="uniform", **run), 31.0 + seed, weights=dict.fromkeys(names, 1.0))


def dg_runs(root: Path, *, seeds=2, shots=(1, 5), targets=("digits",), dataset="digits") -> None:
    """Main only, uniform, ARML, and the oracle that leaves the misleading source out."""
    sources = ("mnist5k", "inverted", "misleading")
    for seed in range(seeds):
        for target in targets:
            for count in shots:
                run = {"dataset": dataset, "target": target, "shots": count, "seed": seed}
                found = 30.0 - count + seed
                learned = dict(zip(sources, (2.0 + 0.1 * seed, 0.9, 0.1 - 0.1 * seed), strict=True))
                write(root, Domains(learner="main_only", method="uniform", **run), found)
                write(root, Domains(method="uniform", **run), found + 4, weights=dict.fromkeys(sources, 1.0))
                write(root, Domains(method="arml", **run), found - 2 + 0.5 * seed, weights=learned)
                oracle = Domains(method="uniform", leave_out=("misleading",), **run)
                write(root, oracle, found - 3, weights=dict.fromkeys(sources[:2], 1.0))


def scarce_runs(root: Path, few, many) -> None:
    """ARML on two seeds; tasks a, b and c have the weights ``few`` at 1 shot and ``many`` at 100."""
    for seed in range(2):
        for shots, weights in ((1, few), (100, many)):
            write(root, Domains(shots=shots, seed=seed), 10.0, weights=dict(zip("abc", weights, strict=True)))


def finished_chart() -> Lines:
    """A chart that somebody else made, with both axes in powers of ten and a band."""
    curves = (
        Series("pairwise", [2, 10], [2.0, 10.0], [1.8, 9.0], [2.2, 11.0]),
        Series("double_backward", [2, 10], [3.0, 3.0], [2.7, 2.7], [3.3, 3.3]),
    )
    panels = tuple(Panel(kind, curves) for kind in ("MLP", "ResNet18"))
    axes = ("auxiliary tasks K", "time, fixed weights = 1")
    return Lines("cost", "Cost of an update", "Time of a step.", *axes, panels, log_x=True, log_y=True, level=1.0)
