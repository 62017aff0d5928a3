"""A run, which is plain data, becomes everything it trains with. One file for each setting, one skeleton for all.

- ``fingerprints``: which files a run reads, so that a changed file makes another run
- ``method_file``: a method in a file of the user's
- ``networks``: the name of a network -> a trunk
- ``components``: optimiser, Reweighter and noise of a run
- ``skeleton``: what a setting contributes -> everything a run trains with
- ``semi_supervised``, ``multi_label``, ``domains``: data and learner of each setting
- ``suite``: data and learner of a world of known truth
- ``settings``: how every kind of run is made
"""

from arml.lab.build.settings import build, complete
from arml.lab.build.skeleton import Folders

__all__ = ["Folders", "build", "complete"]
