"""Three small experiments on embedded data, one per setting."""

from arml.lab.experiments import domain_runs, multi_label_runs, semi_supervised_runs
from arml.lab.run import Run


def runs(seeds: int) -> list[Run]:
    """Main task only and every compared method, on unlabelled digits, yeast genes, and digits of several domains.

    Presets are those of the single comparisons, so their finished runs are reused. Runs are sorted by seed, so that an
    unfinished demo can already be reported.
    """
    digits = semi_supervised_runs.Table(learners=("supervised",), grid=False)
    domains = domain_runs.Table(learners=("main_only", "jt"), without=("misleading",))
    tables: list[list[Run]] = [
        [*digits.runs(semi_supervised_runs.cpu("digits"), seeds)],
        [*multi_label_runs.Table().runs(multi_label_runs.cpu("yeast"), seeds)],
        [*domains.runs(domain_runs.cpu("digits"), seeds)],
    ]
    return sorted((run for table in tables for run in table), key=lambda run: run.seed)
