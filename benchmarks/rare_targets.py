"""Do the weights go to rare targets, whatever the main one? Reads runs with many yes-or-no targets.

For every finished run: Spearman's correlation, over the auxiliary targets, between the final weight and the rate of
positives. Near -1, the rarest targets have the largest weights. Means are over runs: main targets times seeds.
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from scipy.stats import spearmanr

from arml.lab.data import celeba, yeast
from arml.lab.data.targets import Target
from arml.lab.run_kinds import MultiLabel
from arml.lab.trace import read, result
from arml.report.data.summary import summarise


def main(words: Sequence[str] | None = None) -> int:
    """Prints one line of a Markdown table per data set, method and main target, and one per data set and method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of runs, as `arml compare mlc` makes them")
    parser.add_argument("--data-dir", type=Path, default=Path(os.environ.get("ARML_DATA", "data")))
    options = parser.parse_args(words)
    found = correlations(options.runs, options.data_dir)
    if not found:
        print("No finished run on yeast or celeba whose weights differ.")
        return 1
    print("| data | weights | main target | Spearman's correlation of weight and rate of positives | n |")
    print("| --- | --- | --- | --- | --- |")
    for (dataset, method, target), values in sorted(found.items()):
        summary = summarise(values)
        print(f"| {dataset} | {method} | {target} | {summary} | {summary.n} |")
    return 0


def correlations(runs: Sequence[Path], data: Path) -> dict[tuple[str, str, str], list[float]]:
    """The correlation in every finished run, by data set, method and main target; also over all main targets."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    rates: dict[str, dict[str, float]] = {}
    for path in sorted(path for folder in runs for path in folder.rglob("record.jsonl")):
        recorded = read(path)
        run, outcome = recorded.run, result(recorded.records)
        if not isinstance(run, MultiLabel) or run.dataset not in READERS or outcome is None:
            continue
        if run.dataset not in rates:
            rates[run.dataset] = READERS[run.dataset](data)
        value = correlation(outcome["weights"], rates[run.dataset])
        if value is not None:
            for target in (run.main, "all"):
                found[run.dataset, run.method, target].append(value)
    return found


def correlation(weights: Mapping[str, float], rates: Mapping[str, float]) -> float | None:
    """Spearman's correlation of weight and rate over the tasks; ``None`` if all weights are equal."""
    if len(set(weights.values())) < 2:
        return None
    return float(spearmanr([weights[name] for name in weights], [rates[name] for name in weights]).statistic)


def _rates(targets: Mapping[str, Target]) -> dict[str, float]:
    return {name: float(target.values[target.present].mean()) for name, target in targets.items()}


READERS: dict[str, Callable[[Path], dict[str, float]]] = {
    "yeast": lambda _: _rates(yeast.load().targets),
    "celeba": lambda data: _rates(celeba.lists(data).targets),
}
"""How the rates of positives are found, by data set."""

if __name__ == "__main__":
    sys.exit(main())
