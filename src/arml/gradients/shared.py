"""The parameters that the tasks share: chosen by name or by object, never by position."""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from torch import Tensor, nn

Shared: TypeAlias = nn.Module | Mapping[str, Tensor] | Iterable[Tensor]
"""A module, parameters by name (see :func:`shared_parameters`), or the parameters themselves."""


class ParametersByName(dict[str, Tensor]):
    """Parameters, and where to find those that have taken their places since."""

    def __init__(self, module: nn.Module, names: tuple[str, ...]) -> None:
        super().__init__(_find_parameters(module, names))
        self._module, self._names, self._found = module, names, dict(self)

    def read(self) -> dict[str, Tensor]:
        """The parameters of these names as the module has them now; what is here, if it has been changed by hand."""
        unchanged = self.keys() == self._found.keys() and all(p is self._found[name] for name, p in self.items())
        return _find_parameters(self._module, self._names) if unchanged else dict(self)


def shared_parameters(module: nn.Module, *names: str) -> dict[str, Tensor]:
    """The parameters of ``module`` whose name is, or lies below, one of ``names``.

    A ``Reweighter`` reads them again at every update, so it sees parameters that have been replaced or added.

    >>> model = nn.ModuleDict({"trunk": nn.Linear(3, 2), "head": nn.Linear(2, 1)})
    >>> list(shared_parameters(model, "trunk"))
    ['trunk.weight', 'trunk.bias']
    >>> shared_parameters(model, "backbone")
    Traceback (most recent call last):
        ...
    ValueError: No parameter of ModuleDict is named 'backbone' or lies below it. Submodules: head, trunk; ...
    """
    return ParametersByName(module, names)


def _find_parameters(module: nn.Module, names: tuple[str, ...]) -> dict[str, Tensor]:
    if not names:
        raise ValueError(
            f"No name was given. Submodules of {type(module).__name__}: {_children(module)}; pass one or more of them."
        )
    parameters = dict(module.named_parameters())
    for name in names:
        if not any(_lies_below(full, name) for full in parameters):
            raise ValueError(
                f"No parameter of {type(module).__name__} is named {name!r} or lies below it. "
                f"Submodules: {_children(module)}; pass one of them, or a longer name "
                f"such as {next(iter(parameters), '')!r}."
            )
    return {full: p for full, p in parameters.items() if any(_lies_below(full, name) for name in names)}


def parameters_by_name(shared: Shared) -> dict[str, Tensor]:
    """All accepted forms of ``shared`` as one dictionary without repetitions (tied weights count once).

    Frozen parameters that are not of floating point numbers, as quantised layers have them, are left out.
    """
    if isinstance(shared, Tensor):
        raise TypeError("`shared` is a single tensor. Pass a module, or a list or dictionary of parameters.")
    named: dict[str, Tensor]
    if isinstance(shared, nn.Module):
        named = dict(shared.named_parameters())
    elif isinstance(shared, ParametersByName):
        named = shared.read()
    elif isinstance(shared, Mapping):
        named = dict(shared)
    else:
        named = {f"parameter {i}": p for i, p in enumerate(shared)}
    for name, parameter in named.items():
        _check_parameter(name, parameter)
    if not named:
        raise ValueError(
            f"`shared` ({type(shared).__name__}) holds no parameters. Pass the part of the model all tasks go through, "
            "such as model.trunk or shared_parameters(model, 'trunk'). A generator is empty once it has been used."
        )
    unique = {id(p): name for name, p in reversed(named.items())}
    return {name: p for name, p in named.items() if unique[id(p)] == name and p.is_floating_point()}


def keep_readable(shared: Shared) -> Shared:
    """``shared`` in a form that can be read more than once: a generator becomes a list."""
    return shared if isinstance(shared, nn.Module | Mapping | Tensor) else list(shared)


def is_read_anew(shared: Shared) -> bool:
    """Whether reading ``shared`` again finds parameters that have been replaced."""
    return isinstance(shared, nn.Module | ParametersByName)


def parameters_of_layer(named: Mapping[str, Tensor], layer: str | None) -> dict[str, Tensor]:
    """The parameters in ``named`` that belong to ``layer``; all of them for ``None``."""
    if layer is None:
        return dict(named)
    chosen = {name: p for name, p in named.items() if _lies_below(name, layer)}
    if not chosen:
        raise ValueError(
            f"The method measures gradients on the layer {layer!r}, which is not among the shared parameters. "
            f"Known: {', '.join(named)}. Pass `shared` as a module or by name, and one of these names as the layer."
        )
    return chosen


def _lies_below(full: str, name: str) -> bool:
    return full == name or full.startswith(name + ".")


def _children(module: nn.Module) -> str:
    return ", ".join(sorted(name for name, _ in module.named_children())) or "none"


def _check_parameter(name: str, parameter: object) -> None:
    if not isinstance(parameter, Tensor):
        raise TypeError(
            f"`shared` holds {name!r} of type {type(parameter).__name__}. Expected parameters: pass a module, "
            "model.trunk.parameters(), or shared_parameters(model, 'trunk')."
        )
    if parameter.is_complex() and parameter.requires_grad:
        raise TypeError(
            f"`shared` holds {name!r} of complex numbers ({parameter.dtype}), whose gradients are not compared. Keep "
            "real and imaginary part in one real parameter (torch.view_as_complex), or leave it out of `shared`."
        )
    frozen = isinstance(parameter, nn.Parameter) and not parameter.requires_grad
    if not parameter.is_leaf or not (frozen or parameter.is_floating_point()):
        raise TypeError(
            f"`shared` holds {name!r}, which is no parameter but a computed or integer tensor ({parameter.dtype}). "
            "Pass the parameters that the optimiser steps."
        )
