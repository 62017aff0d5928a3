"""Where runs are trained: in processes of this machine, or on a Ray cluster.

- ``base``: what every engine does
- ``local``: worker processes of this machine
- ``on_ray``: tasks of a Ray cluster
"""

from arml.lab.engines.base import Ended, Engine, EngineSettings, Job, Work
from arml.lab.engines.local import Local
from arml.lab.engines.on_ray import OnRay

__all__ = ["Ended", "Engine", "EngineSettings", "Job", "Local", "OnRay", "Work"]
