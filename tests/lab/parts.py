"""Parts of a run, made as commands make them."""

from pathlib import Path
from typing import Any

from arml.lab.build import Folders, build
from arml.lab.run import Run
from arml.lab.train import Parts


def make(run: Run, folder: Path) -> Parts[Any]:
    """Everything ``run`` trains with; data and cache are in ``folder``."""
    return build(run, Folders(folder, folder))
