"""Adds noise after the optimiser's step, which turns training into sampling."""

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.optim import SGD, Adam, AdamW, Optimizer


class Langevin:
    r"""Adds Gaussian noise after every step of ``optimizer``, so that parameters sample instead of settling.

    .. math:: \theta \leftarrow \theta - \epsilon P \nabla L + \mathcal N(0,\ 2 \epsilon P\, T / N)

    with a loss L that is a mean over N examples: then N L is the negative log-likelihood of the paper, whose step
    is :math:`\epsilon / N`, and :math:`\theta` samples from :math:`\exp(-N L / T)`. P is the optimiser's
    preconditioner: 1 for SGD, :math:`1 / (\sqrt{\hat v} + \varepsilon)` for Adam and AdamW (whose change over time
    is neglected, as in Li et al., *Preconditioned Stochastic Gradient Langevin Dynamics*, AAAI 2016). Entries that
    never had a gradient get no noise: Adam does not move them either.

    With momentum :math:`\mu` the noise must also pass through the momentum, or directions of large curvature come out
    far too wide: :math:`\xi \sim \mathcal N(0,\ (1 - \mu)^2\, 2 \epsilon P\, T / N)` is added to :math:`\theta` and to
    the velocity, where :math:`\epsilon P` is how far a unit of gradient moves :math:`\theta` in the long run, for SGD
    lr / (1 - mu) (Chen, Fox and Guestrin, *Stochastic Gradient Hamiltonian Monte Carlo*, ICML 2014).

    This is the first stage of ARML's Algorithm 1: noise until the weights have converged, then plain optimisation. The
    authors' release adds noise to the gradient instead, before Adam rescales it, with a variance of its own.

    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> noise = Langevin(optimizer, num_examples=1000)        # until=lambda: reweighter.converged
    >>> optimizer.step()                                      # nothing had a gradient: nothing moves
    >>> noise.remove()
    """

    def __init__(
        self,
        optimizer: Optimizer,
        num_examples: int,
        *,
        parameters: Iterable[Tensor] | None = None,
        temperature: float = 1.0,
        until: Callable[[], bool] | None = None,
        seed: int = 0,
    ) -> None:
        """Attaches itself to ``optimizer``.

        Args:
            optimizer: SGD (with or without momentum), Adam or AdamW.
            num_examples: N, the examples that the training loss is a mean over: the size of the data, not of a batch.
            parameters: the parameters that get noise, such as the shared ones; ``None``: all that the optimiser steps.
            temperature: T; 1 samples from the posterior, 0 adds no noise.
            until: noise stops for good once this returns true.
            seed: seeds the noise. Pass the same on every process, or their parameters drift apart.
        """
        if not isinstance(optimizer, SGD | Adam | AdamW):
            raise TypeError(
                f"Langevin knows the step size of SGD, Adam and AdamW. Got {type(optimizer).__name__}. Use one of "
                "these while the weights are learned, or leave the noise out (the simplified algorithm)."
            )
        if num_examples < 1:
            raise ValueError(
                f"`num_examples` should be the number of training examples, at least 1. Got {num_examples!r}."
            )
        if not 0 <= temperature < float("inf"):
            raise ValueError(f"`temperature` should be a number of at least 0. Got {temperature!r}.")
        self.num_examples, self.temperature, self.until = num_examples, temperature, until
        self._chosen = None if parameters is None else _check_members(parameters, optimizer)
        for p in (p for group in optimizer.param_groups for p in group["params"] if self._gets_noise(p)):
            _check_precision(p)
        self._generators: dict[str, torch.Generator] = {}
        self._seed, self._stopped = seed, False
        self._handle = optimizer.register_step_post_hook(self._add_noise)

    @property
    def active(self) -> bool:
        """Whether the next step gets noise."""
        if self.until is not None and not self._stopped:
            self._stopped = self.until()
        return not self._stopped

    def remove(self) -> None:
        """Detaches itself from the optimiser."""
        self._handle.remove()

    def state_dict(self) -> dict[str, Any]:
        """Everything that later noise depends on."""
        generators = {device: generator.get_state() for device, generator in self._generators.items()}
        return {"seed": self._seed, "stopped": self._stopped, "generators": generators}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues with exactly the noise that would have followed when ``state`` was saved."""
        self._seed, self._stopped = state["seed"], state["stopped"]
        self._generators = {}
        for device, generator_state in state["generators"].items():
            self._generator(torch.device(device)).set_state(generator_state.cpu())

    @torch.no_grad()
    def _add_noise(self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        del args, kwargs
        if not self.active:
            return
        for group in optimizer.param_groups:
            for p in group["params"]:
                # Parameters without a gradient were not stepped.
                if p.grad is not None and self._gets_noise(p):
                    _check_precision(p)  # the model may have been converted since
                    self._kick(p, _dynamics(optimizer, group, p))

    def _gets_noise(self, p: Tensor) -> bool:
        return p.requires_grad and (self._chosen is None or id(p) in self._chosen)

    def _kick(self, p: Tensor, dynamics: "_Dynamics") -> None:
        variance = dynamics.friction**2 * 2 * dynamics.step * self.temperature / self.num_examples
        noise = torch.randn(p.shape, generator=self._generator(p.device), device=p.device, dtype=p.dtype)
        noise *= variance.sqrt().to(p)
        p.add_(noise, alpha=dynamics.lookahead)
        if dynamics.momentum is not None:
            dynamics.momentum.sub_(noise / dynamics.gain)

    def _generator(self, device: torch.device) -> torch.Generator:
        if str(device) not in self._generators:
            self._generators[str(device)] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[str(device)]


class _Dynamics(NamedTuple):
    """How an optimiser moves one parameter."""

    step: Tensor
    """eps P: how far a unit of gradient moves each entry in the long run."""
    friction: float = 1.0
    """1 - mu: the share of its velocity that an entry loses in a step."""
    momentum: Tensor | None = None
    """The optimiser's buffer that holds the velocity."""
    gain: Tensor | float = 1.0
    """How far a unit in that buffer moves an entry in one step."""
    lookahead: float = 1.0
    """How many steps of its velocity an entry takes at once: 1 + mu with Nesterov momentum."""


def _dynamics(optimizer: Optimizer, group: dict[str, Any], p: Tensor) -> _Dynamics:
    lr = torch.as_tensor(group["lr"], device=p.device)
    state = optimizer.state[p]
    return _sgd_dynamics(group, state, lr) if isinstance(optimizer, SGD) else _adam_dynamics(group, state, lr)


def _sgd_dynamics(group: dict[str, Any], state: dict[str, Any], lr: Tensor) -> _Dynamics:
    mu = float(group["momentum"])
    if mu == 0:
        return _Dynamics(lr)
    step = lr * (1 - float(group["dampening"])) / (1 - mu)
    return _Dynamics(step, 1 - mu, state["momentum_buffer"], lr, 1 + mu if group["nesterov"] else 1)


def _adam_dynamics(group: dict[str, Any], state: dict[str, Any], lr: Tensor) -> _Dynamics:
    beta1, beta2 = group["betas"]
    second_moment = state["max_exp_avg_sq"] if group["amsgrad"] else state["exp_avg_sq"]
    bias1, bias2 = 1 - math.pow(beta1, state["step"]), 1 - math.pow(beta2, state["step"])
    moved = lr / ((second_moment / bias2).sqrt() + group["eps"])
    step = torch.where(second_moment > 0, moved, torch.zeros_like(moved))
    return _Dynamics(step, 1 - beta1, state["exp_avg"], moved / bias1)


def _check_precision(p: Tensor) -> None:
    if torch.finfo(p.dtype).bits < 32:
        raise TypeError(
            f"Langevin noise rounds to zero on parameters of {str(p.dtype).removeprefix('torch.')}, and so do small "
            "steps. Keep the parameters in float32 and compute under torch.autocast, or leave the noise out."
        )


def _check_members(parameters: Iterable[Tensor], optimizer: Optimizer) -> set[int]:
    known = {id(p) for group in optimizer.param_groups for p in group["params"]}
    chosen = [id(p) for p in parameters]
    if not chosen or not set(chosen) <= known:
        raise ValueError(
            f"{len(set(chosen) - known)} of the {len(chosen)} given `parameters` are not stepped by this optimiser "
            f"({len(known)} are). Pass parameters that it holds, or leave `parameters` out for all of them."
        )
    return set(chosen)
