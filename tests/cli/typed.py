"""Commands as a user types them, run inside the test's own process: starting another takes seconds each time."""

import io
import os
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest.mock import patch

from arml.cli import main


def arml(*words: str) -> SimpleNamespace:
    """Return code, and what was printed, in lines of 80 letters."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch.dict(os.environ, COLUMNS="80"):
        try:
            code = main(list(words))
        except SystemExit as stop:
            code = stop.code
    return SimpleNamespace(returncode=code, stdout=out.getvalue(), stderr=err.getvalue())
