"""Lines about a table that is divided: how many labels learn, choose and test, and what they cannot tell."""

from collections.abc import Mapping
from pathlib import Path

from arml.lab.data.table_files import remark_once
from arml.lab.data.target_splits import FewLabels
from arml.lab.data.targets import Target
from arml.lab.run_kinds import FOLDS


def remark_division(path: Path, name: str, main: Target, others: Mapping[str, Target], rows: FewLabels) -> None:
    """Says once per table how the labels of the main target ``name`` are used."""
    labelled, few = int(main.present.sum()), len(rows.main)
    choosing = len(rows.validation)
    remark_once(
        path,
        f"{labelled} of {len(main.values)} rows have a label of {name!r}. Each seed uses {few + choosing} of them: "
        f"{few} for learning, {choosing or 'none'} for choosing a network. It is tested on {labelled // FOLDS} others, "
        f"and {FOLDS} seeds in a row test every labelled row once.",
    )
    rare = [value for number, value in enumerate(main.classes) if int((main.values == number).sum()) < FOLDS]
    if rare:
        names = ", ".join(map(repr, rare))
        remark_once(
            path, f"Classes of {name!r} with fewer than {FOLDS} rows are missing from some test parts: {names}."
        )
    if len(others) == 1:
        remark_once(
            path,
            f"One auxiliary column, {next(iter(others))!r}: a weighting has nothing to share out between tasks. The "
            "question is whether to use it: compare the lines with it and the main task alone.",
        )
