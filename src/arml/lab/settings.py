"""The three settings of the paper by name: their runs, presets and comparisons. Nothing here loads torch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from arml.lab.experiments import domain_runs, multi_label_runs, semi_supervised_runs
from arml.lab.run import Run
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised

AnyRun: TypeAlias = Any
"""Each setting has its own kind of run."""


class Setting(NamedTuple):
    """What the command line and reports need to know about a setting."""

    run: type[Run]
    table: type[Any]
    """Which lines a comparison has."""
    presets: Mapping[str, Callable[[str], Run]]
    datasets: Sequence[str]
    default_table: Callable[[AnyRun], Any] | None = None
    """The comparison that suits a run's data set; ``None``: the same for all."""
    seeds: int = 3
    """Number of seeds in a comparison by default."""
    own_data: str = ""
    """The option that names the user's own data; their data set has the same name."""

    def table_for(self, run: AnyRun) -> Any:
        """The comparison that suits ``run``."""
        return self.table() if self.default_table is None else self.default_table(run)


SETTINGS: dict[str, Setting] = {
    "ssl": Setting(
        SemiSupervised,
        semi_supervised_runs.Table,
        semi_supervised_runs.PRESETS,
        semi_supervised_runs.DATASETS,
    ),
    "mlc": Setting(
        MultiLabel,
        multi_label_runs.Table,
        multi_label_runs.PRESETS,
        multi_label_runs.DATASETS,
        seeds=5,
        own_data="table",
    ),
    "dg": Setting(
        Domains,
        domain_runs.Table,
        domain_runs.PRESETS,
        domain_runs.DATASETS,
        default_table=domain_runs.default_table,
        own_data="folders",
    ),
}
