"""Where learned weights go wrong, as sections of the page."""

from arml.theory.failure_charts import failure_charts
from arml.theory.section import Section
from arml.theory.session import Findings


def failure_sections(found: Findings) -> list[Section]:
    """One section per way to fail."""
    drawn = failure_charts(found)
    b, d = found.vanishing, found.minibatch
    errors = ", ".join(f"{name} {error:.3f}" for name, error in b.errors.items())
    return [
        Section(
            "misleading",
            "It fails: every task misleads",
            (
                "ARML's weights sum to K, so something must be spent on tasks that only mislead. The best weights with "
                "this sum, exact, show what no such method can avoid; the best weights of any sum show what was "
                "possible. Gated ARML, Agreement and a fading share can let go.",
                "The price: where all tasks are right, letting go costs what they would have given.",
            ),
            charts=(drawn["misleading"],),
        ),
        Section(
            "vanishing",
            "It fails: the main gradient has nothing more to say",
            (
                "Where the joint loss is minimal, the main gradient is the opposite of the weighted auxiliary one, and "
                "ARML's slope is that of 2 |sum alpha_k g_k|^2: the main task has dropped out, and the smallest "
                "gradient wins. Here a flat task takes the weight from a helpful one.",
                f"Excess error at the end: {errors}.",
            ),
            charts=(drawn["vanishing"],),
        ),
        Section(
            "units",
            "It fails: losses in unequal units",
            (
                "A factor on one loss is a factor on its gradient, and ARML's weights, with their fixed sum, cannot "
                "undo it. A factor on all losses changes the step of the weights by its square: below some size "
                "the weights do not move. Common units remove the first fault, the scale-free step the second. "
                "Agreement has neither, and here gains less than a well-chosen step of ARML.",
            ),
            charts=(drawn["units"],),
        ),
        Section(
            "minibatch",
            "It fails: noisy gradients",
            (
                "The squared length of a noisy gradient is too large by its variance. ARML's objective grows by "
                f"sum alpha_k^2 s_k^2, which pulls the weight of a noisy task down from {d.without_noise:.2f}, however "
                "well it agrees. Inner products with the main gradient have no such bias, but their scatter grows: "
                "Agreement asks for proof, and gives less weight where the noise is large.",
            ),
            charts=(drawn["minibatch"],),
        ),
    ]
