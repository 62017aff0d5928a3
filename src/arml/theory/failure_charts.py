"""Where learned weights go wrong, as charts."""

from arml.report.charts.chart import NOT_NEGATIVE, Lines, Panel
from arml.theory.curves import describe_last, line, mean_lines
from arml.theory.session import Findings


def failure_charts(found: Findings) -> dict[str, Lines]:
    """One chart per way to fail, by the name of its part."""
    a, b, c, d = found.misleading, found.vanishing, found.units, found.minibatch
    misleading = [
        line("main task alone, exact", a.distances, a.main_alone),
        line("best weights, exact", a.distances, a.best),
        line("best with sum K, exact", a.distances, a.best_with_sum),
        *mean_lines(a.distances, a.measured),
    ]
    noisy = [
        line("exact, with the bias", d.noises, d.expected),
        *(line(name, d.noises, values) for name, values in d.measured.items()),
    ]
    return {
        "misleading": Lines(
            "theory-misleading",
            "Every auxiliary task misleads",
            "Excess error of the main task against the distance of all three auxiliary tasks. "
            + describe_last(misleading),
            "distance of the tasks",
            "excess squared error",
            (Panel("", tuple(misleading)),),
            bounds=NOT_NEGATIVE,
        ),
        "vanishing": Lines(
            "theory-vanishing",
            "Weight flows to a task that says nothing",
            "What the helpful task's loss is multiplied by, over training; the other task is nearly flat. "
            + describe_last([line(name, b.steps, values) for name, values in b.weights.items()]),
            "training step",
            "factor on the helpful task",
            (Panel("", tuple(line(name, b.steps, values) for name, values in b.weights.items())),),
            bounds=NOT_NEGATIVE,
        ),
        "units": Lines(
            "theory-units",
            "Losses in other units",
            "Excess error of the main task against a factor on losses, mean over sets of examples. Left, or first, the "
            "factor is on the helpful task's loss, then on all losses.",
            "factor",
            "excess squared error",
            (
                Panel("on the helpful task's loss", tuple(mean_lines(c.factors, c.one_loss))),
                Panel("on all losses", tuple(mean_lines(c.factors, c.all_losses))),
            ),
            log_x=True,
            bounds=NOT_NEGATIVE,
        ),
        "minibatch": Lines(
            "theory-minibatch",
            "Noisy gradients lose weight",
            "Weight of the task that agrees with the main one, against the noise of its minibatch gradient. "
            + describe_last(noisy),
            "standard deviation of its gradient",
            "weight, 1 = equal share",
            (Panel("", tuple(noisy)),),
            log_x=True,
            level=d.without_noise,
            level_title="without noise",
            bounds=NOT_NEGATIVE,
        ),
    }
