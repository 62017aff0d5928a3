"""The method for those who choose none."""

from arml.methods.agreement import Agreement


def recommended() -> Agreement:
    """The method that ``Reweighter(tasks=..., shared=...)`` uses, chosen on the ``dev`` worlds of ``arml suite``."""
    return Agreement()
