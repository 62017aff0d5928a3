"""The options of every command, and nothing else: help must not wait for torch."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Generic, Literal, TypeVar

import tyro

from arml.bench.request import Request
from arml.lab.environment import data_folder
from arml.lab.run import Run

Preset = Literal["cpu", "paper"]
R = TypeVar("R", bound=Run)
T = TypeVar("T")


@dataclass(frozen=True)
class Demo:
    """See it work in two to three minutes: 20 labelled digits, four other sources, one of them misleading."""

    seeds: int = 8
    """Runs per line, with seeds 0, 1, ... All lines share the same splits."""
    workers: int = 2
    """Number of runs side by side, each with one thread."""
    out: Path = Path("runs/demo")
    """Where to make the folders of runs and the report. Finished runs found there are not repeated."""


@dataclass(frozen=True)
class EngineOptions:
    """Where runs are trained."""

    engine: Literal["local", "ray"] = "local"
    """Where to train: on this machine, or on a Ray cluster."""
    workers: int = 2
    """For local: number of runs side by side, each with one thread."""
    address: str = ""
    """For ray: address of the cluster, or auto; none: start Ray on this machine."""
    cpus_per_run: float = 1.0
    """For ray: cores that a run takes."""
    gpus_per_run: float = 0.0
    """For ray: GPUs that a run takes; 0.25 puts four runs on one."""
    device: str = "auto"
    """Where a run trains: auto, cpu, cuda, cuda:NUMBER or mps; without a number, runs spread over all devices."""


@dataclass(frozen=True)
class Train(Generic[R]):
    """Train one network. Validation examples choose it; test examples are used once, at the end."""

    run: Annotated[R, tyro.conf.arg(name="")]
    preset: Preset = "cpu"
    """Sets the defaults of all other options: cpu takes two minutes per run at most, paper is the
    paper's exact protocol."""
    out: Path = Path("runs")
    """Where to make the folder of the run: a folder, or a URL such as s3://bucket/runs."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""
    resume: bool = False
    """Continue from the last checkpoint, if there is one. Without it an unfinished run starts again."""
    threads: int = 1
    """Number of torch threads. One is fastest for small networks."""
    device: str = "auto"
    """Where to train: auto, cpu, cuda, cuda:NUMBER or mps; auto is the best there is. With torchrun, several processes
    train the run together."""


@dataclass(frozen=True)
class Compare(Generic[R, T]):
    """Train every learner with the weighting methods of --methods over several seeds, and show the table."""

    run: Annotated[R, tyro.conf.arg(name="")]
    table_lines: Annotated[T, tyro.conf.arg(name="")]
    preset: Preset = "cpu"
    """Sets the defaults of all other options: cpu takes two minutes per run at most, paper is the
    paper's exact protocol."""
    seeds: int = 3
    """Runs per line, with seeds 0, 1, ... All lines share the same splits."""
    engine: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(default_factory=EngineOptions)
    """Where runs are trained."""
    out: Path = Path("runs")
    """Where to make the folders of runs: a folder, or a URL such as s3://bucket/runs. Finished runs found there are
    not repeated."""
    settings: Path | None = None
    """A file of `arml tune` with rates and weight steps for some of the lines; none: all lines as the options say."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""
    paper: bool = False
    """Also show the paper's own figures, where it has them."""
    leave_one_out: bool = True
    """Afterwards also train without one auxiliary task at a time, with equal weights, to see which ones help: all of
    up to 10 tasks, else the two strongest and the two weakest."""


@dataclass(frozen=True)
class Tune(Generic[R, T]):
    """Search rate, weight step, auxiliary scale, network and steps, with the same effort for every line."""

    run: Annotated[R, tyro.conf.arg(name="")]
    table_lines: Annotated[T, tyro.conf.arg(name="")]
    preset: Preset = "cpu"
    """Sets the defaults of all other options: cpu takes two minutes per run at most, paper is the
    paper's exact protocol."""
    trials: int = 8
    """Settings to try per line; the first are those of the preset."""
    seeds: int = 2
    """Runs per setting, with seeds 0, 1, ... The same for all lines."""
    together: bool = False
    """One setting for all lines, by their mean score, for what a table has in common; else every line has its own."""
    networks: tuple[str, ...] = ()
    """Networks to choose from; none: not searched."""
    step_counts: tuple[int, ...] = ()
    """Numbers of steps to choose from; none: not searched."""
    lr_range: tuple[float, float] | None = (3e-4, 3e-2)
    """Least and largest step size of the optimiser; none: not searched."""
    weight_lr_range: tuple[float, float] | None = (1e-3, 1.0)
    """Least and largest step size of the weights, for methods that have one; none: not searched."""
    aux_scale_range: tuple[float, float] | None = (0.1, 10.0)
    """Least and largest factor on the auxiliary losses; none: not searched."""
    engine: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(default_factory=EngineOptions)
    """Where runs are trained."""
    out: Path = Path("runs/tune")
    """Where to make the folders of runs: a folder, or a URL. Finished runs found there are not repeated."""
    settings: Path = Path("settings.toml")
    """The file to write, for `arml compare --settings`."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""


@dataclass(frozen=True)
class ReportRuns:
    """Tables, figures, a verdict on each auxiliary task, and a page to open in a browser."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of runs, also at a URL such as s3://bucket/runs, single runs, record files, or a cost.json of
    `arml bench`."""
    out: Path = Path("report")
    """Where index.html, tables.md, tables.tex and figures are written."""
    paper: bool = False
    """Show the paper's own figures next to ours, where it has them."""
    figures: int = 16
    """How many figures to write as PNG and SVG files, those over several subjects first; the page has all of them."""
    tables: bool = True
    """Also print the tables; the page and tables.md have them in any case."""
    watch: bool = False
    """Keep running until stopped: rewrite the page when a record changes; the page reloads itself."""
    every: float = 5.0
    """Seconds between two checks of the records while watching."""


@dataclass(frozen=True)
class Labels:
    """How many labels each method needs to reach a result, also as a share of what uniform weights need."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of runs, single runs or record files, at two numbers of labels or more."""
    error: tuple[float, ...] = ()
    """Test errors in % to reach; none: the middle of what uniform weights and the main task alone reach."""
    average_precision: tuple[float, ...] = ()
    """Likewise, average precisions in %, for targets with few positive examples."""


@dataclass(frozen=True)
class SuiteOptions:
    """Score every method in worlds of known truth: harm, gain, share of the oracle's gain, rank of helpful tasks."""

    tier: Literal["dev", "test"] = "dev"
    """Worlds to choose defaults with (dev), or worlds for a published table (test): other data, other seeds."""
    list: bool = False
    """Show the worlds of both tiers and end."""
    quick: bool = False
    """A few fast worlds of dev and 3 seeds: at most 5 minutes on two cores."""
    worlds: tuple[str, ...] = ()
    """Names of worlds, separated by spaces or commas; none: all of the tier."""
    methods: tuple[str, ...] = ()
    """Methods, separated by spaces or commas; none: all. Main task only, uniform weights and the oracle always run."""
    method_file: tuple[Path, ...] = ()
    """Python files with further methods. Each is code that is run: give only files that you trust."""
    seeds: int = 10
    """Number of seeds."""
    workers: int = 2
    """Number of runs side by side, each with one thread."""
    table: str = ""
    """Your own CSV or Parquet file: worlds are made from it in place of the embedded ones. Needs --main and --aux."""
    folders: str = ""
    """Your own folder with <domain>/<class>/<image>: worlds are made from it. Needs --main."""
    main: str = ""
    """The main column of the table, or the target domain of the folders."""
    aux: tuple[str, ...] = ()
    """Columns of the table to use as auxiliary tasks, separated by spaces or commas."""
    steps: int | None = None
    """Training steps of every run; none: as many as each world says."""
    out: Path = Path("runs/suite")
    """Where to make the folders of runs. Finished runs found there are not repeated."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""


@dataclass(frozen=True)
class Reproduce:
    """Train and show one of the paper's tables or figures by its name.

    table1 to table4 (pacs is table4), figure2 to figure4; misleading: PACS with one source whose classes are wrong;
    tables: every target of many tables as the main one in turn; text: descriptions of functions, and what to tell from
    them. What will be trained, how long it takes and what differs from the paper is printed first. The same command
    continues where it was stopped.
    """

    artefact: Annotated[str, tyro.conf.Positional] = ""
    """What to reproduce; none: list all."""
    scale: Literal["cpu", "gpu"] = "cpu"
    """A protocol reduced to two cores, or the paper's own."""
    list: bool = False
    """List the artefacts and end."""
    seeds: int | None = None
    """Runs per line, with seeds 0, 1, ...; none: 5 at cpu scale, 3 at gpu scale, as in the paper."""
    tables: Path | None = None
    """For tables: a folder of CSV and Parquet files whose targets are known, or named in its targets.toml; none: only
    those of scikit-learn."""
    weights: str = ""
    """At gpu scale, for PACS: a file of ImageNet weights that ResNet18 starts from."""
    steps: int | None = None
    """Training steps of every run, for a trial; none: as many as the protocol has."""
    engine: Annotated[EngineOptions, tyro.conf.arg(name="")] = field(default_factory=EngineOptions)
    """Where runs are trained."""
    out: Path = Path("runs/reproduce")
    """Where to make the folders of runs: a folder, or a URL. Finished runs found there are not repeated."""
    results: Path | None = None
    """A folder to write the tables to, as a page of Markdown with its figures; none: only the terminal."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""


@dataclass(frozen=True)
class Bench(Request):
    """What learning the weights costs with few and many tasks: our engines, other libraries, and targets."""

    out: Path = Path("runs/bench")
    """Where cost.json, tables.md and figures are written."""
    again: Path | None = None
    """Measure nothing: show this cost.json, and make tables and figures from it."""


@dataclass(frozen=True)
class Theory:
    """Compute every link of ARML's argument in worlds of known truth, and when it fails; writes a page."""

    out: Path = Path("runs/theory")
    """Where index.html, tables.md and figures are written."""
    seed: int = 0
    """Seeds all draws."""
    quick: bool = False
    """Fewer draws and points: about a minute on two cores."""
    workers: int = 2
    """Number of processes side by side, each with one thread."""


@dataclass(frozen=True)
class List:
    """List the data sets and where they are."""

    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""


@dataclass(frozen=True)
class Fetch:
    """Download a data set, check its checksums, and continue where an earlier attempt stopped."""

    name: Annotated[str, tyro.conf.Positional]
    """A data set such as cifar10 or celeba; `arml data list` shows all names."""
    data_dir: Path = field(default_factory=data_folder)
    """Where to put it. Default: the environment variable ARML_DATA, or data."""
    base_url: str | None = None
    """Another address to download the files from."""


@dataclass(frozen=True)
class Check:
    """Read a data set and say what is in it; with --cache, check the decoded images of earlier runs."""

    name: Annotated[str, tyro.conf.Positional] = ""
    """A data set such as cifar10 or celeba; `arml data list` shows all names."""
    data_dir: Path = field(default_factory=data_folder)
    """Where data sets are. Default: the environment variable ARML_DATA, or data."""
    cache: bool = False
    """Compare every block of the decoded images below --out with its checksum."""
    out: Path = Path("runs")
    """For --cache: where the folders of runs are."""
