"""The machine of a run: what somebody who repeats it needs to know."""

import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path


def data_folder() -> Path:
    """Where data sets are: the environment variable ARML_DATA, or ``data``."""
    return Path(os.environ.get("ARML_DATA", "data"))


@cache
def environment() -> dict[str, str]:
    """Versions, operating system and processor. No times and no names: the same for every run on a machine."""
    import torch  # here, because the command line asks for the data folder when it shows its help

    return {
        "arml": version("arml"),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": _processor(),
    }


def _processor() -> str:
    """The processor's name, where the system provides it (Linux)."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else platform.machine()
