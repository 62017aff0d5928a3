"""A stage imports only from stages above it."""

import ast
from pathlib import Path

import arml

STAGES = [
    "_distributed",
    "gradients",
    "methods",
    "convergence",
    "schedule",
    "losses",
    "reweighter",
    "langevin",
    "lab",
    "report",
    "bench",
    "sklearn",
    "cli",
]
CORE = STAGES[: STAGES.index("lab")]
INSIDE = {
    "gradients": ["shared", "signals", "second", "backward", "forward", "auto", "measure"],
    "methods": ["_simplex", "base", "arml"],
    "lab": [
        "data",
        "models",
        "tasks",
        "learners",
        "metrics",
        "environment",
        "run",
        "trace",
        "train",
        "sweep",
        "experiments",
    ],
}
CORE_MAY_IMPORT = {"torch", "numpy", "arml"}
PACKAGE = Path(arml.__file__).parent


def imports(path: Path) -> list[str]:
    """Modules imported when ``path`` is loaded: not those under ``if TYPE_CHECKING``."""
    tree = ast.parse(path.read_text())
    top = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    return [
        name
        for node in top
        for name in ([node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    ]


def files(stage: str) -> list[Path]:
    path = PACKAGE / stage
    return [p for p in path.rglob("*.py") if p.name != "__init__.py"] if path.is_dir() else [path.with_suffix(".py")]


def test_every_file_belongs_to_a_stage():
    found = {p.stem for p in PACKAGE.glob("*.py")} | {p.name for p in PACKAGE.iterdir() if (p / "__init__.py").exists()}
    assert found - {"__init__", "__main__"} == set(STAGES)


def test_stages_import_from_above_only():
    for rank, stage in enumerate(STAGES):
        for path in files(stage):
            used = {name.split(".")[1] for name in imports(path) if name.startswith("arml.")}
            assert used <= {*STAGES[:rank], stage}, f"{path.name} imports {used}"


def test_files_inside_a_stage_do_so_too():
    for stage, order in INSIDE.items():
        for path in files(stage):
            part = path.relative_to(PACKAGE / stage).parts[0].removesuffix(".py")
            allowed = [*order[: order.index(part)], *([part] if path.stem != part else [])] if part in order else order
            prefix = f"arml.{stage}."
            used = {name.removeprefix(prefix).split(".")[0] for name in imports(path) if name.startswith(prefix)}
            assert used <= set(allowed), f"{path.name} imports {used}"


def test_the_core_needs_torch_and_numpy_only():
    import sys

    for path in [PACKAGE / "__init__.py", *(path for stage in CORE for path in files(stage))]:
        roots = {name.split(".")[0] for name in imports(path)}
        assert roots <= CORE_MAY_IMPORT | set(sys.stdlib_module_names), f"{path} imports {roots}"


def test_only_one_file_calls_autograd_grad():
    callers = {
        p.name for p in PACKAGE.rglob("*.py") if "import grad" in p.read_text() or "autograd.grad(" in p.read_text()
    }
    assert callers == {"backward.py"}
