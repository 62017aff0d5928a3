"""The module a user holds: it takes named losses and returns one scalar."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from arml.convergence import Convergence, WindowState, initial_state
from arml.gradients.auto import Auto
from arml.gradients.backward import Engine, TaskLosses, depends_on
from arml.gradients.forward import CentralDifferences, DualNumbers, RandomState, Replay
from arml.gradients.measure import alignment, gram, norms
from arml.gradients.shared import Shared, parameters_by_name, parameters_of_layer
from arml.gradients.signals import Signals
from arml.gradients.sketch import TaskProducts, measure_tasks
from arml.joint import weighted_sum
from arml.losses import Aux, Closure, average_losses, check_names, fill_missing, leave_out, order_losses
from arml.methods.base import Method
from arml.rounds import Round, Rounds
from arml.schedule import Constant, Growing


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

    Tasks may be missing from a batch: leave them out of ``aux`` (or pass ``main=None``). An update then goes on over
    the next calls until all tasks have been met. A task whose loss or gradient is not finite counts as missing.

    Under ``torch.distributed`` every process must make the same calls; all hold the same weights as one process would
    on the whole batch.

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

        like = torch.zeros(1 + len(self.tasks), dtype=torch.float64)
        self._weights, self._memory = method.update(method.init(like), Signals(like, present=like.bool()))
        # All losses are scaled at once, here and where they are measured: K products would add K nodes to every graph.
        self._scale = torch.tensor([1.0, *[aux_scale] * len(self.tasks)], dtype=like.dtype)
        self._window_state = initial_state(like)
        self._rounds = Rounds(like)
        self._calls, self._calls_to_wait = 0, 0

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

    def forward(self, main: Tensor | None = None, aux: Aux | None = None, *, closure: Closure | None = None) -> Tensor:
        """Returns the joint loss. In training mode, with gradients enabled, it may update the weights first.

        Args:
            main: the main loss, a scalar; ``None`` when the batch has no main labels.
            aux: auxiliary losses by task name; a task may be missing.
            closure: recomputes ``(main, aux)``, which makes updates cheaper. Given alone, it also computes the losses
                themselves, and later calls repeat its random draws (dropout, augmentation) exactly.
        """
        start = None
        if closure is not None and main is None and aux is None:
            start = RandomState()
            main, aux = closure()
        losses = order_losses(self.tasks, main, aux)
        if self.training and torch.is_grad_enabled() and not self.converged and self.method.needs().losses:
            self._calls_to_wait = max(0, self._calls_to_wait - 1)
            self._rounds.notice(losses)
            if self._calls_to_wait == 0 or not self._measures_gradients():
                self._update(losses, closure, start)
            self._calls += 1
        return self._joint_loss(losses)

    def _joint_loss(self, losses: Sequence[Tensor | None]) -> Tensor:
        main_weight, *alpha = self._weights.tolist()
        factors = [main_weight, *(alpha if self.aux_scale == 1 else [w * self.aux_scale for w in alpha])]
        if not self.train_on_main:
            losses, factors = losses[1:], factors[1:]
        used = [(loss, factor) for loss, factor in zip(losses, factors, strict=True) if loss is not None]
        if not used:
            raise ValueError(
                "With train_on_main=False there is nothing to train on in a batch without auxiliary losses. "
                f"Pass at least one of {', '.join(self.tasks)}."
            )
        return weighted_sum([loss for loss, _ in used], [factor for _, factor in used])

    def _measures_gradients(self) -> bool:
        needs = self.method.needs()
        return needs.gram or needs.norms or self.method.directions(self._memory) is not None

    def _update(self, losses: Sequence[Tensor | None], closure: Closure | None, start: RandomState | None) -> None:
        """Updates the weights, if what this batch and those before it show is enough for it."""
        local, held = fill_missing(losses), torch.tensor([loss is not None for loss in losses])
        everywhere = average_losses(torch.stack(local), held, self._rounds.now.expected)
        present, scale = everywhere.present, _to_memory(everywhere.scale) * self._scale
        usable = present & self._find_finite(everywhere.values)
        values = torch.where(usable, _to_memory(everywhere.values) * self._scale, 0.0)
        self._rounds.expect(everywhere.expected)
        stride, signals = 1.0, Signals(values, present=usable)
        if self._measures_gradients():
            found = (
                self._measure_batch(signals, local, scale, closure, start)
                if self._rounds.is_covered_by(present)
                else self._measure_round(signals, local, scale, present)
            )
            if found is None:
                return  # not enough to compare: the next call tries again
            self._calls_to_wait = self._schedule.after(self._calls)
            signals, stride = found, self._schedule.stride(self._calls_to_wait)
        self.signals = signals._replace(stride=stride)
        self._weights, self._memory = self.method.update(self._memory, self.signals)
        # Weights that could not move, because a single task was compared, have not settled.
        enough = int(self.signals.presence()[1:].sum()) >= min(2, len(self.tasks))
        if self._measures_gradients() and enough and self.convergence is not None:
            self._window_state = self.convergence.update(self._window_state, self._weights)
            if self.converged:
                self._weights = self._window_state.average

    def _measure_batch(
        self, known: Signals, losses: TaskLosses, scale: Tensor, closure: Closure | None, start: RandomState | None
    ) -> Signals | None:
        """``known`` with the products of this batch, without tasks that are not finite; ``None``: none can be had."""
        usable = known.presence()
        for _ in range(2):
            if not bool(usable[0] & usable[1:].any()):
                return None
            given = leave_out(losses, usable)
            signals = self._observe(given, scale, self._engine(closure, start, usable))
            products = [part for part in (signals.alignment, signals.gram, signals.norms) if part is not None]
            if all(bool(part.isfinite().all()) for part in products):
                if not any(bool(part.any()) for part in products):
                    self._check_connected(given)
                self._rounds.clear()
                return signals._replace(losses=torch.where(usable, known.losses, 0.0), present=usable)
            # One gradient that is not finite spoils every product with the direction; only the norms show whose it is.
            lengths = norms(given, self._measured) if signals.norms is None else signals.norms
            usable = usable & self._find_finite(lengths)
        return None

    def _measure_round(self, known: Signals, losses: TaskLosses, scale: Tensor, present: Tensor) -> Signals | None:
        """Adds this batch to the round; what the round shows if it ends with this batch."""
        tasks = self._rounds.tasks_to_measure(known.presence())
        if tasks:
            found = measure_tasks(losses, self._measured, tasks)
            if not bool(found.squares.any()):
                self._check_connected(leave_out(losses, known.presence()))
            which = torch.zeros_like(present)
            which[tasks] = True
            which &= self._find_finite(found.squares)
            scaled = TaskProducts(
                scale[0] * scale * found.with_main, scale.square() * found.squares, scale[:, None] * found.sketches
            )
            self._rounds.add(scaled, which, known.losses)
        return self._rounds.end(present, self.method, self._memory)

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

    def _engine(self, closure: Closure | None, start: RandomState | None, usable: Tensor) -> Engine | Auto:
        if self.engine is not None:
            return self.engine
        if closure is None:
            return self._auto

        def recompute() -> Tensor:
            return torch.stack(leave_out(fill_missing(order_losses(self.tasks, *closure())), usable))

        first: list[Engine] = [DualNumbers(recompute, m, start, self._replay) for m in self._modules_of_shared]
        first.append(CentralDifferences(recompute, start, self._replay))
        return self._auto.prefer(*first)

    def _find_finite(self, values: Tensor) -> Tensor:
        """[1 + K] of bool: which ``values`` are finite. Warns about the others, once per task."""
        fine = values.isfinite().cpu()
        names = [name for name, ok in zip(("main", *self.tasks), fine.tolist(), strict=True) if not ok]
        new = [name for name in names if name not in self._warned]
        self._warned.update(new)
        if new:
            warnings.warn(
                f"The loss or gradient of {', '.join(map(repr, new))} is not finite. At such steps an auxiliary task "
                "counts as missing, and without the main task nothing is updated; the returned loss is unchanged. This "
                "warning appears once per task.",
                stacklevel=2,
            )
        return fine

    def _check_connected(self, losses: TaskLosses) -> None:
        trainable = [p for p in self._measured.values() if p.requires_grad]
        if trainable and not depends_on(losses, trainable):
            first = next(iter(self._measured))
            raise ValueError(
                f"No loss depends on the shared parameters ({len(self._measured)} of them, the first is {first!r}). "
                "Pass as `shared` the trunk that computed these losses, not a copy of it."
            )

    def get_extra_state(self) -> dict[str, Any]:
        """The weights, the method's memory and all counters, as plain tensors and numbers."""
        return {
            "tasks": list(self.tasks),
            "method": repr(self.method),
            "calls": self._calls,
            "calls_to_wait": self._calls_to_wait,
            "weights": self._weights.clone(),
            "memory": [part.clone() for part in self._memory],
            "progress": [part.clone() for part in self._window_state],
            "round": [part.clone() for part in self._rounds.now],
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Continues exactly where ``state`` was saved, also on a fresh instance."""
        for what, mine in (("tasks", list(self.tasks)), ("method", repr(self.method))):
            if state[what] != mine:
                raise ValueError(
                    f"The checkpoint was made with {what} {state[what]}, this Reweighter has {mine}. "
                    "Make it with the same tasks, in the same order, and the same method."
                )
        self._calls, self._calls_to_wait = state["calls"], state["calls_to_wait"]
        self._weights = state["weights"].cpu().clone()
        self._memory = type(self._memory)(*(part.cpu().clone() for part in state["memory"]))
        self._window_state = WindowState(*(part.cpu().clone() for part in state["progress"]))
        if "round" in state:
            self._rounds.restore(Round(*(part.cpu().clone() for part in state["round"])))

    def extra_repr(self) -> str:
        """Method, tasks and schedule."""
        return f"{self.method}, tasks={list(self.tasks)}, every={self.every}"


def _to_memory(values: Tensor) -> Tensor:
    """Measured numbers, in the form that methods see and remember."""
    return values.detach().cpu().to(torch.float64)
