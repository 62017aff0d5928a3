"""Three small experiments on embedded data, one for each setting."""

from arml.lab.experiments import domains, multi_label, semi_supervised
from arml.lab.run import Run


def runs(seeds: int) -> list[Run]:
    """Main task only and every way to weigh, on unlabelled digits, yeast genes, and digits of several domains.

    Presets are those of the single comparisons, so that finished runs are the same ones. Seed by seed: an unfinished
    demo can already be read.
    """
    tables: list[list[Run]] = [
        [*semi_supervised.Table(learners=("supervised",), grid=False).runs(semi_supervised.cpu("digits"), seeds)],
        [*multi_label.Table().runs(multi_label.cpu("yeast"), seeds)],
        [*domains.Table(learners=("main_only", "jt"), without=("misleading",)).runs(domains.cpu("digits"), seeds)],
    ]
    return sorted((run for table in tables for run in table), key=lambda run: run.seed)
