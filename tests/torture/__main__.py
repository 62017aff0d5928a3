"""The torture: ``python -m torture --out FOLDER`` in this folder's parent, or ``make torture``.

Every case is drawn by the seed and its number. Results are kept in FOLDER/results.jsonl: the same command goes on where
the last one stopped, and a fault can be repeated alone with ``--parts PART --only NUMBER``.
"""

import argparse
import json
import random
import shutil
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

from torture.kills import kill_train, run_twice, signal_train, stop_compare
from torture.malformed import feed, resume_from_damage
from torture.shortages import fill_disk
from torture.soak import train_long

Case = Callable[[random.Random, Path], str]
"""Runs a case in a folder of its own, and says what is wrong; empty if nothing is."""
PARTS: dict[str, tuple[int, Case]] = {
    "kills": (200, kill_train),
    "signals": (60, signal_train),
    "compares": (40, stop_compare),
    "twice": (30, run_twice),
    "full disks": (60, fill_disk),
    "checkpoints": (200, resume_from_damage),
    "malformed": (1000, feed),
    "soak": (1, train_long),
}
"""Number of cases of a full run, about three hours of one core, and what a case is."""


def main() -> int:
    """Runs the cases that have no result yet, prints counts, and returns 1 if there is a fault."""
    options = _parse()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.jsonl"
    found = _read(results, options.seed)
    end = time.monotonic() + 60 * options.minutes
    for part in options.parts:
        full, case = PARTS[part]
        case = partial(case, share=options.share) if part == "soak" else case
        numbers = [options.only] if options.only is not None else range(max(1, round(options.share * full)))
        for number in numbers:
            if ((part, number) in found and options.only is None) or time.monotonic() > end:
                continue
            fault = _attempt(case, random.Random(f"{options.seed} {part} {number}"), out / "case")
            found[part, number] = fault
            with results.open("a") as file:
                file.write(json.dumps({"seed": options.seed, "part": part, "number": number, "fault": fault}) + "\n")
            if fault:
                print(f"{part} {number}: {fault}", flush=True)
    return _summarise(found, options)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="torture", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for results and runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="share of the cases of a full run")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--only", type=int, help="repeat one case")
    parser.add_argument("--minutes", type=float, default=60 * 24, help="begin no case after this time")
    return parser.parse_args()


def _read(path: Path, seed: int) -> dict[tuple[str, int], str]:
    """Results so far; a last line that a kill cut off counts as none."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    known = [json.loads(line) for line in lines]
    return {(one["part"], one["number"]): one["fault"] for one in known if one["seed"] == seed}


def _attempt(case: Case, rng: random.Random, place: Path) -> str:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks in a process with threads: none of them is ours
        return case(rng, place)


def _summarise(found: dict[tuple[str, int], str], options: argparse.Namespace) -> int:
    for part in options.parts:
        faults = [fault for (of, _), fault in found.items() if of == part]
        print(f"{part:<12} {len(faults):>5} cases  {sum(map(bool, faults)):>4} faults")
    bad = sum(bool(fault) for (part, _), fault in found.items() if part in options.parts)
    print(f"seed {options.seed}: {len(found)} cases, {bad} faults")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
