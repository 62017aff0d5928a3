"""Rows of a table -> a line where a model without a network does better."""

from collections.abc import Sequence

from arml.report.tables.rows import Row
from arml.report.titles import ARMLS, KNOWN_AT_PREDICTION, SIMPLE


def simple_model_notes(rows: Sequence[Row]) -> list[str]:
    """What a person should know who might do without the network; empty if there is no simple line."""
    finished = {row.line: row for row in rows if row.metrics and not row.line.variant}
    network = _recommended(list(finished.values()))
    simple = [row for row in finished.values() if row.line.learner in SIMPLE]
    if network is None or not simple:
        return []
    alike = [row for row in simple if row.line.learner != KNOWN_AT_PREDICTION]
    known = [row for row in simple if row.line.learner == KNOWN_AT_PREDICTION]
    return [*_compare(alike, network), *_compare_known(known, network)]


def _recommended(rows: Sequence[Row]) -> Row | None:
    """The network to compare with: of the recommended method if it was run, else with equal weights."""
    by_method = {row.line.method: row for row in rows if row.line.learner == "joint"}
    return next((by_method[name] for name in (*ARMLS, "uniform") if name in by_method), None)


def _compare(simple: Sequence[Row], network: Row) -> list[str]:
    if not simple:
        return []
    best = min(simple, key=_mean_error)
    both = f"{_describe(best)}, against {_describe(network)}"
    if best.metrics["error"].high < network.metrics["error"].low:
        return [f"A simpler model is better here: {both}."]
    if _mean_error(best) < _mean_error(network):
        return [f"A simpler model may do here: {both}. Their intervals overlap."]
    return [f"The best simple model: {both}."]


def _compare_known(known: Sequence[Row], network: Row) -> list[str]:
    better = [row for row in known if _mean_error(row) < _mean_error(network)]
    sure = [row for row in better if row.metrics["error"].high < network.metrics["error"].low]
    return [
        f"If the auxiliary columns are known at prediction time, use them as inputs: {_describe(row)}"
        f"{'' if row in sure else ' (intervals overlap)'}."
        for row in better
    ]


def _mean_error(row: Row) -> float:
    return row.metrics["error"].mean


def _describe(row: Row) -> str:
    return f"{row.title()} {row.metrics['error'].format(1)} %"
