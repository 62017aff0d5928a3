"""Every command: what it is called, what it does, its options, and the function that runs it."""

from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from arml.cli.help_text import examples_text, option_help, paragraphs
from arml.cli.option_list import Option, list_options
from arml.cli.options import (
    Bench,
    Check,
    Compare,
    Demo,
    Fetch,
    Labels,
    List,
    ReportRuns,
    Reproduce,
    SuiteOptions,
    Theory,
    Train,
    Tune,
)
from arml.lab.run import Run
from arml.lab.settings import SETTINGS, Setting


@dataclass(frozen=True)
class Command:
    """The command behind one or two words."""

    heading: str
    """Where it stands in the list of commands."""
    summary: str
    """Its line in that list."""
    options: Any
    """A dataclass whose fields are the options."""
    run: str
    """The file in ``arml.cli`` and its function that runs the command, imported when it is needed."""
    examples: Sequence[str] = ()
    about: str = ""
    """What its help begins with; empty: the docstring of the options."""
    default: Callable[[Sequence[str]], Any] | None = None
    """For commands of a setting: makes the defaults, which depend on ``--preset`` and ``--dataset``."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Options that the runs have but this command decides itself, and what to use in their place."""

    def load(self) -> Callable[[Any, Any], int]:
        """Imports the function that runs the command."""
        file, _, function = self.run.partition(":")
        found: Callable[[Any, Any], int] = getattr(import_module(f"arml.cli.{file}"), function)
        return found

    def offered(self, words: Sequence[str]) -> list[Option]:
        """The options that a user may type."""
        return [option for option in self._all_options(words) if option.flag not in self.refusals(words)]

    def refusals(self, words: Sequence[str]) -> dict[str, str]:
        """Options of the runs that a user may not type, and what to do."""
        digests = [option.flag for option in self._all_options(words) if option.field.endswith("_digest")]
        return {**dict.fromkeys(digests, "arml fills it in"), **self.refused}

    def _all_options(self, words: Sequence[str]) -> list[Option]:
        return list_options(self.options, self.default(words) if self.default is not None else None)

    def help(self, name: str, words: Sequence[str]) -> str:
        """The whole help; the options show the defaults that ``words`` choose."""
        text = self.about or " ".join(str(self.options.__doc__).split())
        usage = f"usage: {name} {' '.join(_places(self.offered(words)))}[OPTIONS]"
        return "\n\n".join([usage, paragraphs(text), examples_text(self.examples), option_help(self.offered(words))])


def _places(options: Sequence[Option]) -> list[str]:
    return [f"{option.field.upper()} " for option in options if option.positional]


TITLES = {
    "ssl": "few labelled images and many unlabelled ones",
    "mlc": "a table, or images with attributes: one to learn, others may help",
    "dg": "the same classes from several sources: photos, sketches, ...",
}
"""The settings in plain words."""
DATA = {
    "ssl": "A few images have a label, many have none (semi-supervised learning). Auxiliary tasks are made from the "
    "images themselves: by how much is an image turned, and do two views show the same one?",
    "mlc": "One column of a table, or one attribute of images, is the main task and has few labels (multi-label "
    "classification). Other columns of the same rows are auxiliary tasks. They need not be known for new rows.",
    "dg": "The same classes come from several sources, such as photos and sketches (domain generalisation). One source "
    "is the target and has few labels; each of the others is an auxiliary task.",
}
NAMES = {
    "ssl": "",
    "mlc": "\n\nNames of columns: --aux age ward, --aux age,ward or --aux age --aux ward. One that begins with a dash: "
    '--main=-x. One with a comma: --aux "height, cm" (if `height` and `cm` are columns, too: --aux \'"height, cm"\').',
    "dg": "\n\nNames of sources: --leave-out a b, --leave-out a,b or --leave-out a --leave-out b. One that begins with "
    "a dash: --target=-x. One with a comma: --leave-out '\"a, b\"'.",
}
TRAIN_EXAMPLES = {
    "ssl": ("arml train ssl --dataset digits --labels 50", "arml train ssl --dataset mnist5k --learner mean_teacher"),
    "mlc": (
        "arml train mlc --table patients.csv --main ill --aux age ward --labels 40",
        "arml train mlc --dataset yeast --main Class3 --method arml",
    ),
    "dg": (
        "arml train dg --folders my/images --target sketches --shots 5",
        "arml train dg --dataset digits --method gated_arml",
    ),
}
COMPARE_EXAMPLES = {
    "ssl": (
        "arml compare ssl --dataset digits --seeds 5",
        "arml compare ssl --methods uniform agreement --label-counts 20 50 --no-grid",
    ),
    "mlc": (
        "arml compare mlc --table patients.csv --main ill --aux age,ward --labels 40",
        'arml compare mlc --table cars.csv --main=-price --aux "height, cm" --aux weight',
    ),
    "dg": (
        "arml compare dg --folders my/images --target sketches",
        "arml compare dg --learners main_only jt --seeds 10",
    ),
}
TUNE_EXAMPLES = {
    "ssl": ("arml tune ssl --dataset digits --methods uniform arml", "arml tune ssl --trials 20 --seeds 3"),
    "mlc": (
        "arml tune mlc --dataset yeast --methods uniform agreement arml",
        "arml tune mlc --table patients.csv --main ill --aux age,ward --lr-range 0.0003 0.03",
    ),
    "dg": ("arml tune dg --learners jt", "arml tune dg --folders my/images --target sketches --trials 4"),
}
SEVERAL = {
    "--seed": "several seeds are trained: use --seeds N",
    "--method": "several methods are trained: use --methods NAME ...",
    "--learner": "several learners are trained",
}
MORE_LEARNERS = {
    "ssl": ": use --learners NAME ...",
    "mlc": ": leave lines out with --no-main-only, add one with --forkmerge",
    "dg": ": use --learners NAME ..., and --focus NAME for the one with all methods",
}


def _train(name: str) -> Command:
    setting = SETTINGS[name]
    return Command(
        "Train one network",
        TITLES[name],
        Train[setting.run],  # type: ignore[name-defined]
        "train:run_train",
        TRAIN_EXAMPLES[name],
        f"Train one network. Validation examples choose it; test examples are used once, at the end.\n\n{DATA[name]}"
        f"{NAMES[name]}",
        lambda words: Train(choose_preset(setting, words)),
    )


def _compare(name: str) -> Command:
    setting = SETTINGS[name]
    return Command(
        "Which auxiliary task helps, and which method?",
        TITLES[name],
        Compare[setting.run, setting.table],  # type: ignore[name-defined]
        "compare:run_compare",
        COMPARE_EXAMPLES[name],
        "Train the main task alone, and with every weighting method, over several seeds. Then show the table."
        f"\n\n{DATA[name]}{NAMES[name]}",
        lambda words: _comparison(setting, choose_preset(setting, words)),
        {**SEVERAL, "--learner": SEVERAL["--learner"] + MORE_LEARNERS[name]},
    )


def _tune(name: str) -> Command:
    setting = SETTINGS[name]
    return Command(
        "Research",
        TITLES[name],
        Tune[setting.run, setting.table],  # type: ignore[name-defined]
        "tune:run_tune",
        TUNE_EXAMPLES[name],
        "Search rate, weight step and auxiliary scale for every learner and method, with the same effort for each, on "
        f"validation examples only. `arml compare {name} --settings FILE` uses what was found.\n\n{DATA[name]}"
        f"{NAMES[name]}",
        lambda words: _search(setting, choose_preset(setting, words)),
        {**SEVERAL, "--learner": SEVERAL["--learner"] + MORE_LEARNERS[name]},
    )


def _search(setting: Setting, run: Run) -> Tune[Run, Any]:
    return Tune(run, setting.table_for(run))


def _comparison(setting: Setting, run: Run) -> Compare[Run, Any]:
    return Compare(run, setting.table_for(run), seeds=setting.seeds)


def choose_preset(setting: Setting, words: Sequence[str]) -> Run:
    """The defaults that ``--preset`` and ``--dataset`` choose; the full parser rejects wrong names."""
    parser = ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    parser.add_argument("--preset", nargs="?", default="cpu")
    parser.add_argument("--dataset", nargs="?", default=setting.datasets[0])
    if setting.own_data:
        parser.add_argument(f"--{setting.own_data}", dest="own", nargs="?")
    known, _ = parser.parse_known_args(list(words))
    dataset = setting.own_data if getattr(known, "own", None) else known.dataset
    preset = setting.presets.get(known.preset, setting.presets["cpu"])
    return preset(dataset if dataset in setting.datasets else setting.datasets[0])


def _command(heading: str, summary: str, options: Any, run: str, *examples: str) -> Command:
    """A command without a setting."""
    return Command(heading, summary, options, run, examples)


COMMANDS: dict[tuple[str, ...], Command] = {
    ("demo",): _command(
        "See it work",
        "20 labelled digits, four other sources, one misleading: an answer",
        Demo,
        "demo:run_demo",
        "arml demo",
        "arml demo --seeds 10",
    ),
    **{("compare", name): _compare(name) for name in SETTINGS},
    **{("train", name): _train(name) for name in SETTINGS},
    ("report",): _command(
        "Results",
        "what to train with, which tasks help; tables, figures, a page",
        ReportRuns,
        "report:run_report",
        "arml report runs",
        "arml report runs --out page --watch",
    ),
    ("labels",): _command(
        "Results",
        "how many labels each method needs to reach a result",
        Labels,
        "report:run_labels",
        "arml labels runs",
        "arml labels runs --error 20 --error 15",
    ),
    ("suite",): _command(
        "Research",
        "every method where it is known which tasks help",
        SuiteOptions,
        "suite:run_suite",
        "arml suite --quick",
        "arml suite --methods arml agreement --tier test",
    ),
    ("reproduce",): _command(
        "Research",
        "the paper's tables and figures by name",
        Reproduce,
        "reproduce:run_reproduce",
        "arml reproduce --list",
        "arml reproduce figure2 --scale cpu --results results",
    ),
    ("bench",): _command(
        "Research",
        "what learning the weights costs",
        Bench,
        "bench:run_bench",
        "arml bench --quick",
        "arml bench --kinds mlp resnet --num-aux 2 39",
    ),
    **{("tune", name): _tune(name) for name in SETTINGS},
    ("theory",): _command(
        "Research",
        "the argument behind the weights, computed and drawn",
        Theory,
        "theory:run_theory",
        "arml theory",
        "arml theory --quick --out page",
    ),
    ("data", "list"): _command(
        "Data sets",
        "which data sets there are, and where",
        List,
        "data:run_list",
        "arml data list",
        "arml data list --data-dir /data",
    ),
    ("data", "fetch"): _command(
        "Data sets",
        "download a data set",
        Fetch,
        "data:run_fetch",
        "arml data fetch svhn",
        "arml data fetch celeba --data-dir /data",
    ),
    ("data", "check"): _command(
        "Data sets",
        "read a data set, and say what is in it",
        Check,
        "data:run_check",
        "arml data check digits",
        "arml data check svhn --data-dir /data",
    ),
}
