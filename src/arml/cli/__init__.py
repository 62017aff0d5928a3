"""The command line: the only place where a typed name becomes an object.

- ``names``: tables of methods and networks; the parts that runs of all settings have
- ``semi_supervised``, ``multi_label``, ``domains``: data sets, learners and the parts of a run, one file a setting
- ``settings``: the three by the word typed for them
- ``demo``, ``train``, ``compare``, ``report``, ``data``: one file a command
- ``main``: from the words typed to the command
"""

from arml.cli.main import main

__all__ = ["main"]
