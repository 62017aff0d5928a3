"""The command line: the only place where a typed name becomes an object.

- ``names``: tables of data sets, learners and methods; the parts of a run
- ``train``, ``compare``, ``data``: one file a command
- ``main``: from the words typed to the command
"""

from arml.cli.main import main

__all__ = ["main"]
