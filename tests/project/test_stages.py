"""A file imports only from files above it: between rooms, and inside every room."""

import ast
import sys
from pathlib import Path

import pytest

import arml

PACKAGE = Path(arml.__file__).parent
ORDER = {
    "arml": [
        "_distributed",
        "gradients",
        "schedule",
        "methods",
        "convergence",
        "fade",
        "units",
        "arguments",
        "losses",
        "connection",
        "precision",
        "packing",
        "state",
        "outputs",
        "nearest",
        "together",
        "joint",
        "reuse",
        "rounds",
        "observer",
        "watch",
        "reweighter",
        "langevin",
        "sampling",
        "lab",
        "report",
        "bench",
        "theory",
        "loggers",
        "recorder",
        "integrations",
        "public",
        "sklearn",
        "cli",
        "__main__",
    ],
    "arml.gradients": [
        "shared",
        "signals",
        "graph",
        "buffers",
        "second",
        "kept",
        "backward",
        "rows",
        "sketch",
        "regression",
        "transfer",
        "compiled",
        "forward",
        "audit",
        "auto",
        "measure",
    ],
    "arml.methods": ["_simplex", "_adam", "_evidence", "_trial", "base", "arml", "agreement"],
    "arml.lab": [
        "data",
        "models",
        "tasks",
        "worlds",
        "learners",
        "metrics",
        "yardsticks",
        "simple_models",
        "environment",
        "hardware",
        "memory",
        "processes",
        "shortage",
        "bounds",
        "catalogue",
        "run",
        "own_loop",
        "run_kinds",
        "run_folder",
        "runs_root",
        "folder_lock",
        "checkpoint",
        "stopping",
        "divergence",
        "trace",
        "journal",
        "agreement",
        "train",
        "tuned",
        "experiments",
        "settings",
        "build",
        "fit",
        "launch",
        "engines",
        "sweep",
        "tune",
        "suite",
    ],
    "arml.lab.engines": ["base", "local", "on_ray"],
    "arml.lab.data": [
        "base",
        "checksums",
        "limits",
        "splits",
        "targets",
        "target_splits",
        "piecewise",
        "preprocess",
        "draws",
        "placement",
        "augment",
        "batches",
        "cache",
        "domain_set",
        "digits",
        "mnist5k",
        "_pickles",
        "cifar10",
        "_matlab",
        "svhn",
        "table_files",
        "table_columns",
        "table_text",
        "table_features",
        "table_targets",
        "table",
        "yeast",
        "celeba",
        "digit_domains",
        "pacs",
        "pacs_misleading",
        "_registry",
        "_download",
        "fetch",
    ],
    "arml.lab.models": ["network", "resnet", "weights", "pixelwise"],
    "arml.lab.tasks": ["jigsaw"],
    "arml.lab.worlds": [
        "world",
        "pools",
        "division",
        "image_worlds",
        "table_worlds",
        "recipes",
        "tier_dev",
        "tier_test",
        "own_worlds",
        "world_batches",
    ],
    "arml.lab.learners": ["base", "ramp", "distances", "joint_training", "jigen", "joint_targets", "fork_merge"],
    "arml.lab.experiments": [
        "domain_runs",
        "multi_label_runs",
        "semi_supervised_runs",
        "demo_runs",
        "suite_runs",
        "every_learner",
        "artefact",
        "paper_artefacts",
        "table_study",
    ],
    "arml.lab.build": [
        "fingerprints",
        "table_remarks",
        "method_file",
        "networks",
        "cached_features",
        "components",
        "skeleton",
        "semi_supervised",
        "multi_label",
        "domains",
        "suite",
        "settings",
    ],
    "arml.lab.suite": ["run_world"],
    "arml.sklearn": ["labels", "folds", "training", "estimators"],
    "arml.report": ["titles", "data", "tables", "charts", "commands", "contents", "output"],
    "arml.report.data": [
        "summary",
        "measure",
        "decision",
        "paper",
        "schema",
        "records",
        "comparison",
        "curves",
        "topics",
        "labels_needed",
        "final_weights",
        "scarcity",
        "verdict",
        "answer",
        "suite_scores",
        "ranks",
        "wins",
    ],
    "arml.report.tables": [
        "sheet",
        "rows",
        "simple_model_notes",
        "results",
        "verdict_sheet",
        "own_loop_words",
        "phrases",
        "other_models",
        "answer_text",
    ],
    "arml.report.charts": ["chart", "one_subject", "over_subjects", "answer_charts"],
    "arml.report.output": ["visible", "text", "terminal", "matplotlib_figures", "plotly_figures", "html", "write"],
    "arml.integrations": ["state"],
    "arml.bench": [
        "request",
        "timing",
        "problems",
        "peers",
        "contenders",
        "result",
        "costs",
        "scaling",
        "step_profile",
        "whole_run",
        "recommended_run",
        "expected_traffic",
        "processes",
        "made_data",
        "lab_steps",
        "cost_targets",
        "process_tables",
        "lab_table",
        "tables",
        "cost_charts",
        "session",
        "publish",
    ],
    "arml.theory": [
        "checks",
        "gaussian",
        "world",
        "objectives",
        "answers",
        "expected_loss",
        "information",
        "regression",
        "cells",
        "theorem",
        "counterexamples",
        "run_arml",
        "langevin_checks",
        "gradient_noise",
        "failures",
        "studies",
        "session",
        "curves",
        "charts",
        "failure_charts",
        "section",
        "failure_sections",
        "sections",
        "page",
    ],
    "arml.theory.failures": ["contenders", "training"],
    "arml.cli": [
        "options",
        "option_list",
        "help_text",
        "words",
        "progress",
        "train",
        "compare",
        "tune",
        "report",
        "demo",
        "suite",
        "table_study",
        "reproduce",
        "bench",
        "theory",
        "data",
        "commands",
        "main",
    ],
}
"""Files and rooms of each package from top to bottom. A file that is not listed comes last and is imported by none."""
CORE = ORDER["arml"][: ORDER["arml"].index("lab")]
CORE_MAY_IMPORT = {"torch", "numpy", "arml"}


def module_name(path: Path) -> str:
    return ".".join(["arml", *path.relative_to(PACKAGE).with_suffix("").parts])


MODULES = {module_name(path).removesuffix(".__init__"): path for path in sorted(PACKAGE.rglob("*.py"))}
PACKAGES = [name for name, path in MODULES.items() if path.name == "__init__.py"]
FILES = {name: path for name, path in MODULES.items() if path.name != "__init__.py"}


def imported_modules(path: Path) -> set[str]:
    """Modules that a file imports anywhere, also inside functions; ``from room import file`` counts as the file."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in MODULES else str(node.module) for name in inside}
    return found


def test_imports_inside_functions_and_of_files_are_found(tmp_path):
    path = tmp_path / "example.py"
    path.write_text(
        "def f():\n    from arml.lab import run\n    import arml.report.titles\n    from arml import ARML\n"
    )
    assert imported_modules(path) == {"arml.lab.run", "arml.report.titles", "arml"}


@pytest.mark.parametrize("package", PACKAGES)
def test_files_import_only_from_files_above_them(package):
    order, prefix = ORDER.get(package, []), f"{package}."
    for name, path in FILES.items():
        if not name.startswith(prefix):
            continue
        own = name.removeprefix(prefix).split(".")[0]
        above = order[: order.index(own)] if own in order else order
        for used in imported_modules(path):
            if used.startswith(prefix):
                sibling = used.removeprefix(prefix).split(".")[0]
                inside_a_room = sibling == own and f"{prefix}{own}" in PACKAGES
                assert inside_a_room or sibling in above, f"{name} imports {used}, which is not above it"
            assert used != package or package == "arml", f"{name} imports the package it is in"


def test_the_order_names_what_exists():
    for package, order in ORDER.items():
        missing = [part for part in order if f"{package}.{part}" not in MODULES]
        assert not missing, f"{package}: {missing}"
    listed = {f"arml.{part}" for part in ORDER["arml"]}
    assert {name for name in MODULES if name.count(".") == 1} == listed


def test_the_core_needs_torch_and_numpy_only():
    for name, path in MODULES.items():
        if name == "arml" or name.split(".")[1] in CORE:
            roots = {used.split(".")[0] for used in top_level_imports(path)}
            assert roots <= CORE_MAY_IMPORT | set(sys.stdlib_module_names), f"{name} imports {roots}"


def top_level_imports(path: Path) -> set[str]:
    """Modules imported when a file is loaded: extras may be imported inside functions."""
    body = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.Import | ast.ImportFrom)]
    names = [[str(n.module)] if isinstance(n, ast.ImportFrom) else [alias.name for alias in n.names] for n in body]
    return {name for group in names for name in group}


def test_commands_assemble_nothing():
    """What a run is made of is the lab's business: the command line sees runs, builds and results."""
    hidden = tuple(f"arml.lab.{room}" for room in ("data", "models", "tasks", "learners"))
    for name, path in FILES.items():
        if name.startswith("arml.cli."):
            inside = {
                used for used in imported_modules(path) if used.startswith(tuple(f"arml.lab.{h}" for h in hidden))
            }
            assert inside <= {"arml.lab.data.fetch"}, f"{name} imports {inside}"


def test_only_one_file_calls_autograd_grad():
    callers = {
        p.name for p in PACKAGE.rglob("*.py") if "import grad" in p.read_text() or "autograd.grad(" in p.read_text()
    }
    assert callers == {"backward.py"}
