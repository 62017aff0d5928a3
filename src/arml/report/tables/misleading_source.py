"""The experiment with a misleading source: is it found, and how close does a method come to leaving it out?"""

from collections.abc import Sequence

from arml.lab.run import Line
from arml.report.data.comparison import Comparison
from arml.report.data.summary import paired_difference, summarise
from arml.report.tables.results import result_note
from arml.report.tables.sheet import Cell, Sheet, difference, number, text, weight_cell
from arml.report.titles import line_title, order, subject_title

MISLEADING = "misleading"
"""The name of such a source."""
ORACLE = f"without {MISLEADING}"
"""The variant of lines that leave it out, as if they knew."""


def misleading_sheets(compared: Sequence[Comparison]) -> list[Sheet]:
    """A table for every comparison with an oracle: a finished line without the misleading source."""
    return [_sheet(comparison) for comparison in compared if _has_oracle(comparison)]


def _has_oracle(comparison: Comparison) -> bool:
    return any(line.variant == ORACLE and runs for line, runs in comparison.finished.items())


def _sheet(comparison: Comparison) -> Sheet:
    lines = [line for line in comparison.finished if line.variant in ("", ORACLE) and comparison.finished[line]]
    lines.sort(key=lambda line: (line.variant == ORACLE, order(line)))
    return Sheet(
        f"A misleading source: {subject_title(comparison.subject)}",
        ("", f"weight of {MISLEADING}", "error", "difference to the oracle"),
        tuple(_row(comparison, line) for line in lines),
        (
            result_note(comparison.protocols()),
            f"oracle: the same learner with equal weights, {ORACLE}: it has to know that this source misleads",
            "difference: paired on the same seeds; * where its interval excludes 0",
        ),
    )


def _row(comparison: Comparison, line: Line) -> tuple[Cell, ...]:
    weights = comparison.weights(line).get(MISLEADING)
    errors = comparison.errors(line)
    oracle = comparison.reference[line]._replace(variant=ORACLE)
    against = None if line == oracle else paired_difference(errors, comparison.errors(oracle))
    return (
        text(("Oracle: " if line == oracle else "") + line_title(line)),
        weight_cell(summarise([*weights.values()])) if weights else text(""),
        number(summarise([*errors.values()])),
        difference(against),
    )
