"""``arml report`` and ``arml labels``: the results of runs."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from arml.bench.cost_charts import cost_chart
from arml.bench.result import collect_costs, cost_files, is_cost_file
from arml.cli.options import Labels, ReportRuns
from arml.cli.progress import say
from arml.cli.train import MOST
from arml.lab.run import Run
from arml.lab.runs_root import local_copy
from arml.lab.settings import SETTINGS
from arml.report.charts.chart import Chart
from arml.report.contents import Report, make_report
from arml.report.data.comparison import Comparison, comparisons
from arml.report.data.measure import AVERAGE_PRECISION, ERROR
from arml.report.data.records import Collected, collect, files
from arml.report.data.topics import Topic, middle_level, topics
from arml.report.output.terminal import print_answers, print_sheets
from arml.report.output.visible import show_controls
from arml.report.output.write import write
from arml.report.tables.labels_sheet import labels_sheet
from arml.report.tables.saving_sentences import saving_sentences


def run_report(command: ReportRuns, console: Console) -> int:
    """Writes the report and prints its tables and sentences."""
    if not 0.1 <= command.every <= 86_400 or not 0 <= command.figures <= MOST:
        raise ValueError(
            f"--every should be 0.1 to 86400 seconds and --figures 0 to {MOST}. "
            f"Got {command.every} and {command.figures}."
        )
    collected, charts = _collect(command.runs, console, may_be_empty=command.watch)
    report = _write(collected, charts, command, live=command.watch)
    _print_report(report, command, console)
    if command.watch:
        _watch(command, console)
    return 0


def run_labels(command: Labels, console: Console) -> int:
    """Prints the table for every data set that was run at several numbers of labels."""
    collected, _ = _collect(command.runs, console, may_be_empty=False)
    compared = comparisons(collected.recorded, collected.failed)
    if not topics(compared):
        raise ValueError(
            "All runs have the same number of labels; two or more are needed. Run for instance "
            "`arml compare ssl --label-counts 20 50 100`."
        )
    for topic, level in _levels(compared, command):
        print_sheets([labels_sheet(topic, level)], console)
        _print_all(saving_sentences(topic, level), console)
    return 0


def _levels(compared: Sequence[Comparison], command: Labels) -> Iterator[tuple[Topic, float]]:
    """Every topic with the shortfalls that labels are needed for."""
    asked = {ERROR: command.error, AVERAGE_PRECISION: command.average_precision}
    if not any(asked.values()):
        yield from ((topic, middle_level(topic)) for topic in topics(compared))
    for measure, results in asked.items():
        found = topics(compared, measure) if results else []
        if results and not found:
            raise ValueError(
                f"No run has an {measure.title()} at two numbers of labels or more. Leave --average-precision out, or "
                "give runs of arml compare mlc whose main target is yes or no."
            )
        yield from ((topic, measure.shortfall(result)) for topic in found for result in results)


def _collect(runs: tuple[Path, ...], console: Console, *, may_be_empty: bool) -> tuple[Collected, list[Chart]]:
    if not runs:
        raise ValueError("No runs are given. Give folders of runs, for instance runs.")
    collected, charts = _collect_with_costs(tuple(local_copy(path) for path in runs))
    for path, reason in collected.skipped:
        say(console, f"skipped {path}: {reason}")
    if not may_be_empty and not collected.recorded and not charts:
        raise ValueError(
            f"There is no record of a run in {', '.join(map(str, runs))}. "
            "Give folders of runs, as `arml train` and `arml compare` make them below --out."
        )
    return collected, charts


def _collect_with_costs(runs: tuple[Path, ...]) -> tuple[Collected, list[Chart]]:
    """The records in ``runs``, and the chart of the cost files among them."""
    collected = collect([path for path in runs if not is_cost_file(path)])
    costs, skipped = collect_costs(cost_files(runs))
    return collected._replace(skipped=[*collected.skipped, *skipped]), [cost_chart(costs)] if costs else []


def _write(collected: Collected, charts: list[Chart], command: ReportRuns, *, live: bool) -> Report:
    """Writes the report; a page that reloads itself comes without figure files: they take longer."""
    report = make_report(collected, paper=command.paper, defaults=defaults, charts=charts)
    reload_every = command.every if live else None
    write(report, command.out, most_figures=0 if live else command.figures, reload_every=reload_every)
    return report


def _print_report(report: Report, command: ReportRuns, console: Console) -> None:
    """The answers, and where everything else is."""
    print_answers([answer.text for answer in report.answers], console)
    if command.tables:
        print_sheets([sheet for section in report.sections for sheet in section.sheets if sheet.brief], console)
    _print_all([warning for section in report.sections for warning in section.warnings], console)
    _print_all([report.overview], console)
    few = len(report.charts()) > command.figures and not command.watch
    hint = f" ({command.figures} of {len(report.charts())} figures as files; see --figures)" if few else ""
    say(console, f"report {command.out / 'index.html'}{hint}")


def _print_all(lines: list[str], console: Console) -> None:
    for line in lines:
        console.print(show_controls(line), highlight=False, markup=False)


def _watch(command: ReportRuns, console: Console) -> None:
    """Compares sizes and times of the records, and rewrites the page if one has changed."""
    console.print(f"watching; stop with Ctrl-C. The page reloads itself every {command.every:g} seconds.")
    seen = _state(command.runs)
    try:
        while True:
            time.sleep(command.every)
            now = _state(command.runs)
            if now != seen:
                seen = now
                _write(*_collect_with_costs(tuple(map(local_copy, command.runs))), command, live=True)
                console.print(f"{time.strftime('%H:%M:%S')} report rewritten", highlight=False)
    except KeyboardInterrupt:
        # The final report has figures, and a page that no longer reloads itself.
        _write(*_collect_with_costs(tuple(map(local_copy, command.runs))), command, live=False)


def _state(runs: tuple[Path, ...]) -> dict[Path, tuple[int, int]]:
    here = tuple(map(local_copy, runs))
    paths = [*files(here), *cost_files(here)]
    found = ((path, path.stat()) for path in paths if path.exists())  # a run may be removed in the meantime
    return {path: (stat.st_size, stat.st_mtime_ns) for path, stat in found}


def defaults(run: Run) -> tuple[list[str], Run]:
    """The words that choose the preset nearest to ``run``, and that preset."""
    if run.setting not in SETTINGS:
        return [], type(run)()
    setting, recorded = SETTINGS[run.setting], str(getattr(run, "dataset", ""))
    dataset = (
        recorded if recorded in setting.datasets else setting.datasets[0]
    )  # the record may come from another version
    made = {name: preset(dataset) for name, preset in setting.presets.items()}
    name = min(made, key=lambda name: _distance(made[name], run))
    return ["--preset", name, "--dataset", dataset], made[name]


def _distance(a: Run, b: Run) -> int:
    return sum(vars(a)[name] != value for name, value in vars(b).items())
