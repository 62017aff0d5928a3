"""Data of a user's own, as tiny files."""

import csv
import random
from pathlib import Path

import numpy as np
from PIL import Image


def write_shades(root: Path) -> Path:
    """Three domains with the classes dark and light, 10 images each."""
    draw = np.random.default_rng(0)
    for domain in ("clay", "ink", "oil"):
        for name, low in (("dark", 0), ("light", 150)):
            folder = root / "shades" / domain / name
            folder.mkdir(parents=True)
            for number in range(10):
                pixels = draw.integers(low, low + 100, (20, 20, 3)).astype(np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.png")
    return root / "shades"


def write_patients(root: Path) -> Path:
    """Whether the sum is positive is known for a third of the rows; what it is, and in which third, for most."""
    draw, path = random.Random(0), root / "patients.csv"
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["a", "b", "ward", "ill", "score", "third", "twin"])
        for number in range(120):
            a, b = draw.gauss(0, 1), draw.gauss(0, 1)
            known = ["yes" if a + b > 0 else "no"] if number % 3 == 0 else [""]
            third = "low" if a + b < -0.5 else "high" if a + b > 0.5 else "middle"
            rows.writerow([a, b, draw.choice("xyz"), *known, a + b if number % 5 else "", third, int(a > b)])
    return path
