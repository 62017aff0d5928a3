"""A result as files, and the verdict on its targets."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from arml.bench.cost_charts import charts
from arml.bench.cost_targets import CostTarget, judge_targets
from arml.bench.result import Result, write_result
from arml.bench.tables import sheets
from arml.report.output.matplotlib_figures import save
from arml.report.output.text import markdown

TABLES = "tables.md"


def write_cost(result: Result, folder: Path) -> Path:
    """Write cost.json: the result, and the verdict on every target."""
    judged = [{**asdict(target), "met": target.met} for target in judge_targets(result)]
    return write_result(result, folder, {"targets": judged})


def publish(result: Result, folder: Path) -> list[Path]:
    """Write cost.json, tables.md and the figures into ``folder``; returns their paths."""
    cost, tables = write_cost(result, folder), folder / TABLES
    tables.write_text(markdown(sheets(result, judge_targets(result))), encoding="utf-8")
    return [cost, tables, *(save(charts(result), folder) if result.timings else [])]


def verdict(judged: Sequence[CostTarget], *, quick: bool) -> Iterator[str]:
    """How many targets are met, in sentences."""
    known = [target for target in judged if target.met is not None]
    if known:
        yield f"{sum(target.met is True for target in known)} of {len(known)} targets that could be judged are met."
    else:
        yield "Nothing that was measured here has a target."
    if quick:
        yield "This was a quick look with few rounds and small batches: its verdict on targets is not final."
