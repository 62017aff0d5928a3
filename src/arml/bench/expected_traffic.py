"""The passes, memory and messages of an update of the weights on paper, also for networks that do not fit here.

Letters: P shared parameters, H parameters of the heads, K auxiliary tasks, n processes, E steps from one update to the
next.
"""

from typing import NamedTuple

from arml.bench.contenders import DIFFERENCES, DUAL, FIXED, GRAPH
from arml.schedule import Growing

ONE_BY_ONE, PAIRWISE, NORMS, GRAM = "one_by_one", "pairwise", "norms (GradNorm)", "Gram matrix"
STORED = "every gradient stored (LibMTL, TorchJD)"
FLOAT32, FLOAT64 = 4, 8
"""Bytes per number: gradients are sent in the parameters' precision, losses and inner products in float64."""


class Traffic(NamedTuple):
    """The all-reduces of one step, and the bytes that a process passes to them.

    The bytes that leave a process depend on the algorithm: on a ring they are 2 (n - 1) / n times as many.
    """

    messages: int
    bytes: int


class ExpectedCost(NamedTuple):
    """A training step that updates the weights by one engine, on paper."""

    name: str
    passes: int
    """Work of a step that updates, in forward passes through the trunk; fixed weights: 3."""
    memory: int
    """Bytes that an update needs at its peak, in addition to activations."""
    graphs: int
    """Graphs kept at once: 2 where the graph of a backward pass is kept in addition to that of the forward pass."""
    gradients: int
    """Bytes that DDP sends in every step."""
    update: Traffic
    """Sent by an update in addition."""
    run_time: float
    """Time of a run that updates in every E-th step; fixed weights: 1."""
    run_traffic: float
    """Bytes sent in such a run; fixed weights: 1."""


def expected_costs(
    num_parameters: int, num_aux: int, *, num_head_parameters: int = 0, every: int = Growing().most, processes: int = 2
) -> list[ExpectedCost]:
    """The expected cost of every engine, fixed weights first.

    The arguments are P, K, H, E and n. Let T = 1 + K. A step with fixed weights is a forward pass (1) and a backward
    pass (2), and DDP sends 4 (P + H) bytes. All parameters are float32; passes through the heads are neglected. An
    update adds:

    - along a direction (ARML): the gradient r of the direction (2) and the derivatives along it. These are another
      backward pass (2) for ``double_backward``, a pass with values and two products each (3) for ``DualNumbers``, two
      forward passes (2) for ``CentralDifferences``, T backward passes for ``one_by_one``. ``pairwise`` has r from its
      T backward passes. Sent: 3 T float64 numbers (losses, presence and what is waited for), r, and T + 1 float64
      numbers (inner products, and whether they failed): 24 T + 4 P + 8 (T + 1) bytes in 3 messages.
    - norms, a Gram matrix: T backward passes. Sent: 24 T bytes, and T gradients, 4 P bytes each: one by one, or all
      in one message.

    ``memory`` counts tensors of 4 P bytes. Several processes need one more for the message, unless it reuses the
    memory of another tensor; ``pairwise`` and the Gram matrix have T rows, and the gradient that becomes one of them.
    The memory of a graph does not depend on P: see ``graphs``.

    Others store T gradients in every step, and train from these without another backward pass. They do not support
    several processes: the T gradients would have to be sent instead of DDP's one.

    >>> _, by_graph, *_ = expected_costs(1_000_000_000, 200, every=10)
    >>> by_graph.update
    Traffic(messages=3, bytes=4000006440)
    >>> round(by_graph.run_traffic, 3)
    1.1
    """
    check_positive(num_parameters=num_parameters, num_aux=num_aux, every=every, processes=processes)
    t, gradient, several = 1 + num_aux, FLOAT32 * num_parameters, processes > 1
    ddp = FLOAT32 * (num_parameters + num_head_parameters) if several else 0
    losses = 3 * t * FLOAT64
    along = Traffic(3, losses + gradient + (t + 1) * FLOAT64)

    def cost(name: str, passes: int, kept: int, sent: Traffic, *, graphs: int = 1, every: int = every) -> ExpectedCost:
        update = sent if several else Traffic(0, 0)
        run_time, run_traffic = 1 + (passes / 3 - 1) / every, 1 + update.bytes / every / max(ddp, 1)
        return ExpectedCost(name, passes, kept * gradient, graphs, ddp, update, run_time, run_traffic)

    return [
        cost(FIXED, 3, 0, Traffic(0, 0)),
        cost(GRAPH, 7, 2 if several else 1, along, graphs=2),
        cost(DUAL, 8, 3 if several else 1, along),
        cost(DIFFERENCES, 7, 3 if several else 2, along),
        cost(ONE_BY_ONE, 5 + 2 * t, 3, along),
        cost(PAIRWISE, 3 + 2 * t, t + 2 if several else t + 1, along),
        cost(NORMS, 3 + 2 * t, 3 if several else 2, Traffic(1 + t, losses + t * gradient)),
        cost(GRAM, 3 + 2 * t, 2 * t if several else t + 1, Traffic(2, losses + t * gradient)),
        cost(STORED, 1 + 2 * t, t, Traffic(t - 1, (t - 1) * gradient), every=1),
    ]


def check_positive(**counts: int) -> None:
    """Raise an error unless every count is at least 1."""
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"`{name}` should be at least 1. Got {count}.")
