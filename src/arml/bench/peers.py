"""Training steps as others compute them: they store the gradient of every task, or differentiate a squared norm."""

from importlib.util import find_spec

import torch
from torch import Tensor

from arml.bench.problems import Problem
from arml.bench.timing import Step
from arml.gradients.backward import differentiate
from arml.methods import project_to_simplex

RATE = 1e-6
"""beta, the step size of the weights: so small that they stay near 1 and every step does the same work."""
NO_TORCHJD = "TorchJD is not installed, so its rows are left out. Get it with `pip install arml[torchjd]`."


def has_torchjd() -> bool:
    """Whether TorchJD, an optional extra, is installed."""
    return find_spec("torchjd") is not None


def torchjd_step(problem: Problem, chunk: int | None) -> Step:
    """TorchJD's ``mtl_backward``: the Jacobian of all losses, aggregated by its mean, TorchJD's cheapest aggregator.

    ``chunk`` losses are differentiated at once. ``None``, TorchJD's default, means all of them.
    """
    from torchjd.aggregation import Mean  # imported here: it is an optional extra
    from torchjd.autojac import jac_to_grad, mtl_backward

    def step() -> None:
        problem.optimizer.zero_grad()
        features = problem.features()
        mtl_backward(problem.losses_of(features), features, parallel_chunk_size=chunk)
        jac_to_grad(problem.trunk.parameters(), Mean())
        problem.optimizer.step()

    return step


def one_backward_per_task(problem: Problem, rate: float = RATE) -> Step:
    """LibMTL: one ``backward()`` per task; each gradient is copied into a row of a matrix J [1 + K, P].

    With r = g_0 - sum_k alpha_k g_k one ARML step is alpha <- project(alpha + 2 beta <g_k, r>). The trunk's gradient is
    w J with w = (1, alpha), without a further pass. The same passes give the gradients of the heads. LibMTL leaves
    those at weight 1; here they are scaled, so that this is the same training step as all others.
    """
    trunk = list(problem.trunk.parameters())
    alpha = torch.ones(len(problem.tasks), device=trunk[0].device)

    def step() -> None:
        nonlocal alpha
        problem.optimizer.zero_grad()
        jacobian = _stored_gradients(problem, trunk)
        r = jacobian[0] - alpha @ jacobian[1:]
        alpha = project_to_simplex(alpha + 2 * rate * (jacobian[1:] @ r), total=float(len(alpha)))
        _write_gradients(problem, trunk, torch.cat([alpha.new_ones(1), alpha]), jacobian)
        problem.optimizer.step()

    return step


def _stored_gradients(problem: Problem, trunk: list[torch.nn.Parameter]) -> Tensor:
    losses = problem.losses_of(problem.features())
    jacobian = torch.zeros(len(losses), problem.num_parameters(), device=trunk[0].device)
    for row, loss in zip(jacobian, losses, strict=True):
        loss.backward(retain_graph=loss is not losses[-1])
        torch.cat([p.grad.flatten() for p in trunk if p.grad is not None], out=row)
        problem.trunk.zero_grad()
    return jacobian


def _write_gradients(problem: Problem, trunk: list[torch.nn.Parameter], w: Tensor, jacobian: Tensor) -> None:
    for p, part in zip(trunk, (w @ jacobian).split([p.numel() for p in trunk]), strict=True):
        p.grad = part.view_as(p)
    for head, weight in zip(problem.heads, w, strict=True):
        for p in head.parameters():
            p.grad = None if p.grad is None else weight * p.grad


def squared_norm(problem: Problem, rate: float = RATE) -> Step:
    """The authors' release: differentiate the squared norm of the gradient of L_0 - sum_k alpha_k L_k, kept as a graph.

    As in the release, the gradients of all parameters are computed and those of the heads are not used, and the second
    backward pass runs through to the parameters, which do not require gradients meanwhile. Unlike the release, the
    weights are projected, not clamped, and the same step also trains, on the graph that exists anyway: the release
    skips training whenever it updates the weights.
    """
    trunk, heads = list(problem.trunk.parameters()), list(problem.heads.parameters())
    alpha = torch.ones(len(problem.tasks), device=trunk[0].device, requires_grad=True)

    def step() -> None:
        main, *aux = problem.losses_of(problem.features())
        aux_losses = torch.stack(aux)
        gap = differentiate(main - (aux_losses * alpha).sum(), [*trunk, *heads], create_graph=True)
        objective = torch.stack([part.norm() ** 2 for part in gap[: len(trunk)]]).sum()
        slope = _slope(objective, alpha, [*trunk, *heads])
        with torch.no_grad():
            alpha.copy_(project_to_simplex(alpha - rate * slope, total=float(len(alpha))))
        problem.descend(main + (aux_losses * alpha.detach()).sum())

    return step


def _slope(objective: Tensor, alpha: Tensor, parameters: list[torch.nn.Parameter]) -> Tensor:
    alpha.grad = None
    for p in parameters:
        p.requires_grad_(False)
    try:
        objective.backward(retain_graph=True)
    finally:
        for p in parameters:
            p.requires_grad_(True)
    return torch.zeros_like(alpha) if alpha.grad is None else alpha.grad
