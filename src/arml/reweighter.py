"""The module a user holds: it takes named losses and returns one scalar."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from arml._distributed import Group, mean_of_numbers
from arml.convergence import Convergence, initial_state
from arml.gradients.auto import Auto
from arml.gradients.backward import Engine, TaskLosses, depends_on
from arml.gradients.forward import CentralDifferences, DualNumbers, RandomState, Replay
from arml.gradients.measure import alignment, gram, norms
from arml.gradients.shared import Shared, parameters_by_name, parameters_of_layer
from arml.gradients.signals import Signals
from arml.losses import Aux, Closure, average_losses, check_names, fill_missing, multiply, order_losses
from arml.methods.base import Method
from arml.packing import State, pack
from arml.schedule import Constant, Growing, check_whole
from arml.state import fill, fill_progress, name_parts, read_state
from arml.together import Processes, check_not_sharded, describe


class Reweighter(nn.Module):
    """Learns how much each auxiliary loss counts, inside the caller's training loop.

    Returns ``main + sum_k weight_k * aux_scale * aux_k`` with weights chosen by ``method``. The caller still calls
    ``backward()`` and does everything after it.

    >>> from arml import Uniform
    >>> trunk, head, rotation = nn.Linear(3, 2), nn.Linear(2, 1), nn.Linear(2, 1)
    >>> reweighter = Reweighter(Uniform(), tasks=["rotation"], shared=trunk)
    >>> features = trunk(torch.ones(4, 3))
    >>> loss = reweighter(main=head(features).mean(), aux={"rotation": rotation(features).mean()})
    >>> loss.backward()
    >>> reweighter.weights
    {'rotation': 1.0}

    Tasks may be missing from a batch: leave them out of ``aux`` (or pass ``main=None``); they keep their weights. A
    loss or gradient that is not finite never reaches the weights. Under ``torch.distributed`` every process must make
    the same calls; all hold the same weights as one process would on the whole batch.

    Weights and memory live on the CPU in float64, whatever the model's device and precision, and are part of
    ``state_dict()``: training continues exactly from a checkpoint.
    """

    def __init__(
        self,
        method: Method[Any],
        tasks: Sequence[str],
        shared: Shared,
        *,
        every: int | Growing = Growing(),  # noqa: B008 -- frozen
        aux_scale: float = 1.0,
        train_on_main: bool = True,
        convergence: Convergence | None = Convergence(),  # noqa: B008 -- frozen
        engine: Engine | None = None,
        process_group: Group = None,
    ) -> None:
        """Measures nothing before the first call.

        Args:
            method: how losses and inner products become weights, such as ``ARML()``.
            tasks: names of the auxiliary tasks.
            shared: what all tasks go through: a module, its parameters, or ``shared_parameters(model, "trunk")``.
            every: calls between two measurements of gradients, a constant or a ``Growing`` schedule. Methods that need
                no gradients are updated at every call.
            aux_scale: multiplies every auxiliary loss before anything else sees it.
            train_on_main: if ``False``, the main loss only steers the weights and is not part of the result.
            convergence: when to stop measuring; ``None``: never.
            engine: how inner products are computed; ``None``: by the cheapest engine that works.
            process_group: the ``torch.distributed.ProcessGroup`` that trains this model; ``None``: all processes.
        """
        super().__init__()
        if not 0 < aux_scale < float("inf"):
            raise ValueError(f"`aux_scale` should be a positive number. Got {aux_scale!r}.")
        self.method, self.tasks = method, check_names(tasks)
        self.every, self.aux_scale, self.train_on_main = every, aux_scale, train_on_main
        self._schedule = every if isinstance(every, Growing) else Constant(every)
        self.convergence, self.engine = convergence, engine
        self.signals: Signals | None = None
        """The input of the last update, for records and plots."""

        # In a tuple, so that nn.Module does not register the caller's model as a part of this one.
        self._modules_of_shared = (shared,) if isinstance(shared, nn.Module) else ()
        self._measured = parameters_of_layer(parameters_by_name(shared), method.needs().layer)
        self._auto, self._replay = Auto(), Replay(*self._modules_of_shared)
        self._warned: set[str] = set()

        # On the CPU, also when the model is made under torch.device("meta") or another default device.
        like = torch.zeros(1 + len(self.tasks), dtype=torch.float64, device="cpu")
        self._weights, self._memory = method.update(method.init(like), Signals(like, present=like.bool()))
        # All losses are scaled at once, here and where they are measured: K products would add K nodes to every graph.
        self._scale = torch.tensor([1.0, *[aux_scale] * len(self.tasks)], dtype=like.dtype, device="cpu")
        self._window_state = initial_state(like)
        self._calls, self._calls_to_wait = 0, 0
        self._processes, self._counts_examples = Processes(process_group), False
        if self._measures_gradients():
            check_not_sharded(self._measured, *self._modules_of_shared)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of every auxiliary task."""
        return dict(zip(self.tasks, self._weights[1:].tolist(), strict=True))

    @property
    def main_weight(self) -> float:
        """The weight of the main task: 1 for all methods but those that treat every task alike."""
        return float(self._weights[0])

    @property
    def converged(self) -> bool:
        """Whether the weights have settled; from then on no gradient is measured."""
        return bool(self._window_state.settled)

    def forward(
        self,
        main: Tensor | None = None,
        aux: Aux | None = None,
        *,
        closure: Closure | None = None,
        num_examples: int | None = None,
    ) -> Tensor:
        """Returns the joint loss. In training mode, with gradients enabled, it may update the weights first.

        Args:
            main: the main loss, a scalar; ``None`` when the batch has no main labels.
            aux: auxiliary losses by task name; a task may be missing.
            closure: recomputes ``(main, aux)``, which makes updates cheaper. Given alone, it also computes the losses
                themselves, and later calls repeat its random draws (dropout, augmentation) exactly.
            num_examples: the examples in this process's part of the batch, if the parts differ in size: processes then
                count by their examples. Give it on all processes and at every call, or leave it out.
        """
        losses, start = self._take_losses(main, aux, closure, num_examples)
        if not self._processes.agreed and self._learns():
            self._agree(num_examples)
        if self.training and torch.is_grad_enabled() and not self.converged and self.method.needs().losses:
            self._calls_to_wait = max(0, self._calls_to_wait - 1)
            if self._calls_to_wait == 0 or not self._measures_gradients():
                with self._processes():
                    self._update(losses, closure, start, num_examples)
            self._calls += 1
        return self._joint_loss(losses)

    def _take_losses(
        self, main: Tensor | None, aux: Aux | None, closure: Closure | None, num_examples: int | None
    ) -> tuple[list[Tensor | None], RandomState | None]:
        """The losses in order, and the random state before a closure computed them."""
        start = None
        try:
            if closure is not None and main is None and aux is None:
                start = RandomState()
                main, aux = closure()
            if num_examples is not None or self._counts_examples:
                self._check_num_examples(num_examples)
            return order_losses(self.tasks, main, aux), start
        except Exception as error:
            self._announce(error)
            raise

    def _learns(self) -> bool:
        return self.training and torch.is_grad_enabled() and self.method.needs().losses

    def _agree(self, num_examples: int | None) -> None:
        """Once: raises, on all processes, unless their updates will match."""
        measured = parameters_by_name(*self._modules_of_shared) if self._modules_of_shared else self._measured
        if self._measures_gradients():
            check_not_sharded(measured, *self._modules_of_shared)
        self._counts_examples = num_examples is not None
        facts = {
            "`tasks`": list(self.tasks),
            "`method`": describe(self.method),
            "`every`": describe(self.every),
            "`aux_scale`": self.aux_scale,
            "the number of calls so far": self._calls,
            "the weights": self.weights,
            "whether `num_examples` is given": self._counts_examples,
            "the number of shared parameters": sum(p.numel() for p in measured.values() if p.requires_grad),
        }
        self._processes.agree(facts, measured.values())

    def _announce(self, error: Exception) -> None:
        """If the other processes wait for this one at this call, raises ``error`` here and there."""
        waits = self._calls_to_wait > 1 and self._measures_gradients()
        if self._learns() and not (self._processes.agreed and (self.converged or waits)):
            device = next(iter(self._measured.values())).device
            self._processes.announce(error, 1 + len(self.tasks), device)

    def _check_num_examples(self, num_examples: int | None) -> None:
        if num_examples is not None:
            check_whole("`num_examples`", num_examples)
        if self._processes.agreed and self._learns() and (num_examples is not None) != self._counts_examples:
            given, now = ("given", "missing") if self._counts_examples else ("missing", "given")
            raise ValueError(
                f"`num_examples` was {given} at the first call and is {now} at this one. Give it at every call, on "
                "every process, or never."
            )

    def _joint_loss(self, losses: Sequence[Tensor | None]) -> Tensor:
        used = [i for i, loss in enumerate(losses) if loss is not None and (i > 0 or self.train_on_main)]
        if not used:
            raise ValueError(
                "With train_on_main=False there is nothing to train on in a batch without auxiliary losses. "
                f"Pass at least one of {', '.join(self.tasks)}."
            )
        chosen = torch.stack(fill_missing([losses[i] for i in used]))
        return ((self._weights * self._scale)[used].to(chosen) * chosen).sum()

    def _measures_gradients(self) -> bool:
        needs = self.method.needs()
        return needs.gram or needs.norms or self.method.directions(self._memory) is not None

    def _update(
        self,
        losses: Sequence[Tensor | None],
        closure: Closure | None,
        start: RandomState | None,
        num_examples: int | None,
    ) -> None:
        """Updates the weights from this batch; leaves them if it measures nothing, or something that is not finite."""
        local = fill_missing(losses)
        present = torch.tensor([loss is not None for loss in losses])
        everywhere = average_losses(torch.stack(local), present, num_examples)
        if everywhere.factor != 1:
            local, closure = [everywhere.factor * loss for loss in local], multiply(closure, everywhere.factor)
        stride = 1.0
        if self._measures_gradients():
            if not bool(everywhere.present[0]) or not bool(everywhere.present[1:].any()):
                return  # nothing to compare: the next call tries again
            self._calls_to_wait = self._schedule.after(self._calls)
            stride = self._schedule.stride(self._calls_to_wait)
        scale = _to_memory(everywhere.scale) * self._scale
        if not self._is_finite(everywhere.values, local):
            return
        signals = self._observe(local, scale, self._engine(closure, start))
        products = [part for part in (signals.alignment, signals.gram, signals.norms) if part is not None]
        if not all(self._is_finite(part, local) for part in products):
            return
        if products and not any(bool(part.any()) for part in products):
            self._check_connected(local)
        values = _to_memory(everywhere.values) * self._scale
        self.signals = signals._replace(losses=values, present=everywhere.present.cpu(), stride=stride)
        self._weights, self._memory = self.method.update(self._memory, self.signals)
        if products and self.convergence is not None:
            self._window_state = self.convergence.update(self._window_state, self._weights)
            if self.converged:
                self._weights = self._window_state.average

    def _observe(self, losses: TaskLosses, scale: Tensor, engine: Engine | Auto) -> Signals:
        """Measures ``scale`` times the losses, whose gradients scale alike."""
        needs, directions = self.method.needs(), self.method.directions(self._memory)
        return Signals(
            torch.stack(list(losses)).detach(),
            None
            if directions is None
            else scale * _to_memory(alignment(losses, self._measured, directions * scale, engine=engine)),
            torch.outer(scale, scale) * _to_memory(gram(losses, self._measured)) if needs.gram else None,
            scale * _to_memory(norms(losses, self._measured)) if needs.norms else None,
        )

    def _engine(self, closure: Closure | None, start: RandomState | None) -> Engine | Auto:
        if self.engine is not None:
            return self.engine
        if closure is None:
            return self._auto

        def recompute() -> Tensor:
            return torch.stack(fill_missing(order_losses(self.tasks, *closure())))

        first: list[Engine] = [DualNumbers(recompute, m, start, self._replay) for m in self._modules_of_shared]
        first.append(CentralDifferences(recompute, start, self._replay))
        return self._auto.prefer(*first)

    def _is_finite(self, values: Tensor, losses: TaskLosses) -> bool:
        """Whether ``values`` are all finite; if not, warns about the tasks at fault, once per task."""
        if bool(values.isfinite().all()):
            return True
        # One gradient that is not finite spoils every product with the direction; only the norms show whose it is.
        lengths = values if values.ndim == 1 else norms(losses, self._measured)
        names = [n for n, fine in zip(("main", *self.tasks), lengths.isfinite().tolist(), strict=True) if not fine]
        new = [name for name in names if name not in self._warned]
        self._warned.update(new)
        if new:
            warnings.warn(
                f"The loss or gradient of {', '.join(map(repr, new))} is not finite. The weights stay as they were at "
                "such steps; the returned loss is unchanged. This warning appears once per task.",
                stacklevel=2,
            )
        return False

    def _check_connected(self, losses: TaskLosses) -> None:
        trainable = [p for p in self._measured.values() if p.requires_grad]
        # A process whose part of the batch holds no such task is fine, as long as another one holds it.
        connected = torch.tensor(float(not trainable or depends_on(losses, trainable)), device=losses[0].device)
        if not bool(mean_of_numbers([connected])[0]):
            first = next(iter(self._measured))
            raise ValueError(
                f"No loss depends on the shared parameters ({len(self._measured)} of them, the first is {first!r}). "
                "Pass as `shared` the trunk that computed these losses, not a copy of it."
            )

    def get_extra_state(self) -> Tensor:
        """Weights, memory and all counters as one tensor of bytes, which ``arml.packing.unpack`` reads."""
        state = {
            "tasks": list(self.tasks),
            "method": repr(self.method),
            "method_type": type(self.method).__qualname__,
            "calls": self._calls,
            "calls_to_wait": self._calls_to_wait,
            "weights": self._weights,
            "memory": name_parts(self._memory),
            "convergence": name_parts(self._window_state),
        }
        # Some tools refuse a tensor whose size differs from that of a fresh model, so there is room for longer numbers.
        return pack(state, room=4096 + 512 * len(self.tasks))

    def set_extra_state(self, state: Tensor | State) -> None:
        """Continues exactly where ``state`` was saved, also on a fresh instance. Settings may have changed."""
        saved = read_state(state, self.tasks, self.method, self._memory)
        self._calls, self._calls_to_wait = saved["calls"], saved["calls_to_wait"]
        if self.method.needs().losses:  # weights that never change come from the settings
            self._weights = saved["weights"].cpu().clone()
            self._memory = fill(self.method.init(self._weights), saved["memory"])
        self._window_state = fill_progress(initial_state(self._weights), saved["convergence"])

    def extra_repr(self) -> str:
        """Method, tasks and schedule."""
        return f"{self.method}, tasks={list(self.tasks)}, every={self.every}"


def _to_memory(values: Tensor) -> Tensor:
    """Measured numbers, in the form that methods see and remember."""
    return values.detach().cpu().to(torch.float64)
