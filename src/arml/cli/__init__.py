"""The command line: the only place where a typed name becomes an object.

- ``options``: the options of every command
- ``option_list``, ``help_text``: from these options to the help
- ``words``: from the words typed to words that the parser takes
- ``commands``: every command by name
- ``demo``, ``train``, ``compare``, ``report``, ``suite``, ``bench``, ``data``: what the commands do
- ``main``: from the words typed to the command

Help needs the first four only, which load neither torch nor pandas.
"""

from arml.cli.main import main

__all__ = ["main"]
