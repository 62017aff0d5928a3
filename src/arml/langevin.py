"""Noise after the optimiser's step: training becomes sampling."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import SGD, Adam, AdamW, Optimizer


class Langevin:
    r"""Adds Gaussian noise after every step of ``optimizer``, so that parameters sample instead of settling.

    .. math:: \theta \leftarrow \theta - \epsilon P \nabla L + \mathcal N(0,\ 2 \epsilon P\, T / N)

    with a loss L that is a mean over N examples: then N L is the negative log-likelihood of the paper, whose step
    is :math:`\epsilon / N`, and :math:`\theta` samples from :math:`\exp(-N L / T)`. P is the optimiser's
    preconditioner: 1 for SGD, :math:`1 / (\sqrt{\hat v} + \varepsilon)` for Adam and AdamW (whose change over time
    is neglected, as in Li et al., *Preconditioned Stochastic Gradient Langevin Dynamics*, AAAI 2016). With momentum
    :math:`\mu` SGD moves :math:`1 / (1 - \mu)` times as far in the long run, and that is the step the noise belongs to.

    The first stage of ARML's Algorithm 1: noise until the weights have converged, then plain optimisation. The authors'
    release adds noise to the gradient instead, before Adam rescales it, with a variance of its own.

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
            num_examples: N, over how many examples the training loss is a mean: the size of the data, not of a batch.
            parameters: which parameters get noise, such as the shared ones; ``None``: all that the optimiser steps.
            temperature: T; 1 samples from the posterior, 0 is no noise.
            until: noise stops for good once this returns true.
            seed: of the noise. The same on every process, or their parameters would drift apart.
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
        self._chosen = None if parameters is None else _checked_members(parameters, optimizer)
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
        """Continues with exactly the noise that would have come where ``state`` was taken."""
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
                if p.grad is not None and (self._chosen is None or id(p) in self._chosen):
                    variance = 2 * _step_size(optimizer, group, p) * self.temperature / self.num_examples
                    noise = torch.randn(p.shape, generator=self._generator(p.device), device=p.device, dtype=p.dtype)
                    p.add_(noise * variance.sqrt().to(p))

    def _generator(self, device: torch.device) -> torch.Generator:
        if str(device) not in self._generators:
            self._generators[str(device)] = torch.Generator(device).manual_seed(self._seed)
        return self._generators[str(device)]


def _step_size(optimizer: Optimizer, group: dict[str, Any], p: Tensor) -> Tensor:
    """eps P: how far, in the long run, a unit of gradient moves each entry of ``p``."""
    lr = torch.as_tensor(group["lr"], device=p.device)
    if isinstance(optimizer, SGD):
        momentum, dampening = float(group["momentum"]), float(group["dampening"])
        return lr * (1 - dampening) / (1 - momentum) if momentum else lr
    state = optimizer.state[p]
    second_moment: Tensor = state["max_exp_avg_sq"] if group["amsgrad"] else state["exp_avg_sq"]
    bias = 1 - math.pow(group["betas"][1], state["step"])
    return lr / ((second_moment / bias).sqrt() + float(group["eps"]))


def _checked_members(parameters: Iterable[Tensor], optimizer: Optimizer) -> set[int]:
    known = {id(p) for group in optimizer.param_groups for p in group["params"]}
    chosen = [id(p) for p in parameters]
    if not chosen or not set(chosen) <= known:
        raise ValueError(
            f"{len(set(chosen) - known)} of the {len(chosen)} given `parameters` are not stepped by this optimiser "
            f"({len(known)} are). Pass parameters that it holds, or leave `parameters` out for all of them."
        )
    return set(chosen)
