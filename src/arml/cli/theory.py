"""``arml theory``: the argument behind the weights, computed and drawn."""

from rich.console import Console

from arml.cli.options import Theory
from arml.cli.progress import count_bar, say
from arml.cli.train import check_at_least_one


def run_theory(command: Theory, console: Console) -> int:
    """Computes and writes; returns 0."""
    from arml.theory.page import write_page  # imported here: no other command needs it
    from arml.theory.session import Plan, compute

    check_at_least_one("--workers", command.workers)
    if command.seed < 0:
        raise ValueError(f"--seed should be at least 0. Got {command.seed}.")
    say(console, "Priors, objectives, Theorem 1, Langevin noise and four ways to fail, from real computations.")
    if not command.quick:
        say(console, "One to two minutes on two cores; --quick takes less.")
    with count_bar("theory", console) as count:
        found = compute(Plan(command.seed, command.quick), command.workers, count)
    figures = write_page(found, command.out)
    say(console, f"{command.out / 'index.html'}: open it in a browser. {len(figures)} figures and tables.md beside it.")
    return 0
