"""The suite of known truths: every method in worlds of which it is known which auxiliary tasks help.

``run_world`` trains one method in one world, without records. ``arml suite`` trains all of them, with records.
"""

from arml.lab.suite.run_world import run_world
from arml.lab.worlds import WORLDS

__all__ = ["WORLDS", "run_world"]
