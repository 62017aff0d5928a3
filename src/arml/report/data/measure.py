"""What an experiment is decided by, and how far a result is from a perfect one."""

from dataclasses import dataclass

from arml.report.data.summary import Summary
from arml.report.titles import METRICS


@dataclass(frozen=True)
class Measure:
    """A measure in %. Comparisons are made on *shortfalls*, of which less is better: 100 minus a score, or the error.

    >>> Measure("average_precision").shortfall(80.0), Measure().shortfall(80.0)
    (20.0, 80.0)
    """

    name: str = "error"
    """As records have it, without ``test_``."""

    def is_error(self) -> bool:
        """Whether less of the measure itself is better."""
        return self.name == "error"

    def shortfall(self, value: float) -> float:
        """The distance to a perfect result."""
        return value if self.is_error() else 100 - value

    def value(self, shortfall: float) -> float:
        """The measure itself."""
        return self.shortfall(shortfall)  # its own inverse

    def mean_shortfall(self, result: Summary) -> Summary:
        """The shortfall of a mean, with the same interval."""
        return result._replace(mean=self.shortfall(result.mean))

    def difference(self, shortfall: Summary) -> Summary:
        """A difference of two shortfalls as one of the measure."""
        return shortfall if self.is_error() else shortfall._replace(mean=-shortfall.mean)

    def title(self) -> str:
        """Its name in a sentence."""
        return METRICS.get(self.name, self.name)

    def better(self) -> str:
        """How a better result compares."""
        return "lower" if self.is_error() else "higher"

    def worse(self) -> str:
        """How a worse result compares."""
        return "higher" if self.is_error() else "lower"


ERROR = Measure()
AVERAGE_PRECISION = Measure("average_precision")
