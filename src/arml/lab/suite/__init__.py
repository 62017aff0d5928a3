"""The suite of known truths: every method in worlds of which it is known which auxiliary tasks help.

- ``worlds`` (in ``arml.lab``): the worlds
- ``run_world``: one method in one world, without records
"""

from arml.lab.suite.run_world import run_world
from arml.lab.worlds import WORLDS

__all__ = ["WORLDS", "run_world"]
