"""The module a user holds: it takes named losses and returns one scalar."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from arml._distributed import Group
from arml.connection import Connection
from arml.convergence import Convergence, initial_state
from arml.gradients.auto import Auto
from arml.gradients.backward import Engine, TaskLosses, record_touched, take_unit_directions
from arml.gradients.forward import CentralDifferences, DualNumbers, RandomState, Replay
from arml.gradients.measure import alignment, gram, norms
from arml.gradients.shared import Shared, is_read_anew, keep_readable, parameters_by_name, parameters_of_layer
from arml.gradients.signals import Signals
from arml.gradients.sketch import TaskProducts, measure_tasks
from arml.joint import weighted_sum
from arml.losses import Aux, Closure, average_losses, check_names, fill_missing, leave_out, multiply, order_losses
from arml.methods.base import Method
from arml.packing import State, pack
from arml.precision import Autocast, LossScale, Precision, check_loss_scale, read_scale
from arml.rounds import Rounds
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

    Tasks may be missing from a batch: leave them out of ``aux`` (or pass ``main=None``). An update then goes on over
    the next calls until all tasks have been met. A task whose loss or gradient is not finite counts as missing. Under
    ``torch.distributed`` every process must make the same calls; all hold the same weights as one process would on the
    whole batch.

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
        loss_scale: LossScale = None,
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
            convergence: when to stop measuring; ``None``: never, and a converged state that is loaded learns on.
            engine: how inner products are computed; ``None``: by the cheapest engine that works.
            loss_scale: multiplies losses while gradients are measured, so that float16 does not turn them into zeros: a
                number, or the ``torch.amp.GradScaler`` of the loop. The returned loss does not have it.
            process_group: the ``torch.distributed.ProcessGroup`` that trains this model; ``None``: all processes.
        """
        super().__init__()
        if not 0 < aux_scale < float("inf"):
            raise ValueError(f"`aux_scale` should be a positive number. Got {aux_scale!r}.")
        self.method, self.tasks = method, check_names(tasks)
        self.every, self.aux_scale, self.train_on_main = every, aux_scale, train_on_main
        self._schedule = every if isinstance(every, Growing) else Constant(every)
        self.convergence, self.engine = convergence, engine
        check_loss_scale(loss_scale)
        self.loss_scale, self._precision = loss_scale, Precision()
        self.signals: Signals | None = None
        """The input of the last update, for records and plots."""

        # In a tuple, so that nn.Module does not register the caller's model as a part of this one.
        self._shared = (keep_readable(shared),)
        self._modules_of_shared = (shared,) if isinstance(shared, nn.Module) else ()
        self._measured = self._read_shared()
        self._connection = Connection(self.tasks, read_anew=is_read_anew(shared))
        self._auto, self._replay = Auto(), Replay(*self._modules_of_shared)
        self._warned: set[str] = set()

        # On the CPU, also when the model is made under torch.device("meta") or another default device.
        like = torch.zeros(1 + len(self.tasks), dtype=torch.float64, device="cpu")
        self._weights, self._memory = method.update(method.init(like), Signals(like, present=like.bool()))
        # All losses are scaled at once, here and where they are measured: K products would add K nodes to every graph.
        self._scale = torch.tensor([1.0, *[aux_scale] * len(self.tasks)], dtype=like.dtype, device="cpu")
        self._window_state, self._rounds = initial_state(self._weights), Rounds(like)
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

    def reset(self) -> None:
        """Forgets that the weights have converged, and goes on learning from the present weights at the next call.

        For data or losses that have changed. The method keeps the rest of its memory, the schedule its count of calls.
        """
        self._window_state = initial_state(self._weights)
        if "weights" in self._memory._fields:
            self._memory = self._memory._replace(weights=self._weights)
        self._calls_to_wait = 0

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
        learns = self._learns()
        if learns and not self._processes.agreed:
            self._agree(num_examples)
        if learns and not self.converged:
            self._calls_to_wait = max(0, self._calls_to_wait - 1)
            self._rounds.notice(losses)
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
        measured = self._read_shared()
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

    def _read_shared(self) -> dict[str, Tensor]:
        """The parameters on which gradients are compared, as the network has them now."""
        return parameters_of_layer(parameters_by_name(self._shared[0]), self.method.needs().layer)

    def _update(
        self,
        losses: Sequence[Tensor | None],
        closure: Closure | None,
        start: RandomState | None,
        num_examples: int | None,
    ) -> None:
        """Updates the weights, if what this batch and those before it show is enough for it."""
        local, held = fill_missing(losses), torch.tensor([loss is not None for loss in losses])
        everywhere = average_losses(torch.stack(local), held, self._rounds.now.expected, num_examples)
        if everywhere.factor != 1:
            local, closure = [everywhere.factor * loss for loss in local], multiply(closure, everywhere.factor)
        present, scale = everywhere.present, _to_memory(everywhere.scale) * self._scale
        usable = present & self._find_finite(everywhere.values)
        values = torch.where(usable, _to_memory(everywhere.values) * self._scale, 0.0)
        self._rounds.expect(everywhere.expected)
        stride, signals = 1.0, Signals(values, present=usable)
        if self._measures_gradients():
            self._measured = self._read_shared()
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
        self._judge_convergence(self.signals)

    def _judge_convergence(self, signals: Signals) -> None:
        # Products that are all 0, as of a frozen trunk, say nothing about where the weights belong; and weights that
        # could not move, because a single task was compared, have not settled.
        informative = any(bool(part.any()) for part in _products(signals))
        enough = int(signals.presence()[1:].sum()) >= min(2, len(self.tasks))
        if self.convergence is None or not informative or not enough:
            return
        self._window_state = self.convergence.update(self._window_state, self._weights)
        if not self.method.can_move(len(self.tasks)):
            settled = torch.ones_like(self._window_state.settled)
            self._window_state = self._window_state._replace(average=self._weights, settled=settled)
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
            with record_touched() as touched, take_unit_directions(enabled=read_scale(self.loss_scale) != 1):
                signals = self._observe(given, scale, self._engine(closure, start, usable))
            if all(bool(part.isfinite().all()) for part in _products(signals)):
                self._check_measured(given, touched, _products(signals))
                self._rounds.clear()
                return signals._replace(losses=torch.where(usable, known.losses, 0.0), present=usable)
            # One gradient that is not finite spoils every product with the direction; only the norms show whose it is.
            finite = self._find_finite(norms(given, self._measured) if signals.norms is None else signals.norms)
            if bool(finite.all()):
                self._precision.report_overflow(self.loss_scale)
                return None
            usable = usable & finite
        return None

    def _measure_round(self, known: Signals, losses: TaskLosses, scale: Tensor, present: Tensor) -> Signals | None:
        """Adds this batch to the round; what the round shows if it ends with this batch."""
        tasks = self._rounds.tasks_to_measure(known.presence())
        if tasks:
            which = torch.zeros_like(present)
            which[tasks] = True
            factor = read_scale(self.loss_scale)
            with record_touched() as touched:
                found = measure_tasks([factor * loss for loss in losses], self._measured, tasks)
            self._check_measured(leave_out(losses, which), touched, [found.squares])
            which &= self._find_finite(found.squares)
            scale = scale / factor
            scaled = TaskProducts(
                scale[0] * scale * found.with_main, scale.square() * found.squares, scale[:, None] * found.sketches
            )
            self._rounds.add(scaled, which, known.losses)
        return self._rounds.end(present, self.method, self._memory)

    def _check_measured(self, losses: TaskLosses, touched: set[int], products: Sequence[Tensor]) -> None:
        """Reports losses without a connection to the shared parameters, and those that float16 turned into zeros."""
        vanished = self._connection.check(losses, self._measured, touched, products)
        self._precision.check_vanished(vanished, [losses[("main", *self.tasks).index(name)] for name in vanished])

    def _observe(self, losses: TaskLosses, scale: Tensor, engine: Engine | Auto) -> Signals:
        """Measures ``scale`` times the losses, whose gradients scale alike."""
        needs, directions = self.method.needs(), self.method.directions(self._memory)
        factor = read_scale(self.loss_scale)
        if self._measures_gradients():
            self._precision.check_scaled(self.loss_scale, losses)
        # The gradients of a direction and of a task are factor times too long: their product is divided by factor^2.
        scaled = losses if factor == 1 else [factor * loss for loss in losses]
        return Signals(
            torch.stack(list(losses)).detach(),
            None
            if directions is None
            else scale * _to_memory(alignment(scaled, self._measured, directions * scale, engine=engine)) / factor**2,
            torch.outer(scale, scale) * _to_memory(gram(scaled, self._measured)) / factor**2 if needs.gram else None,
            scale * _to_memory(norms(scaled, self._measured)) / factor if needs.norms else None,
        )

    def _engine(self, closure: Closure | None, start: RandomState | None, usable: Tensor) -> Engine | Auto:
        if self.engine is not None:
            return self.engine
        if closure is None:
            return self._auto.prefer(present=usable.tolist())
        factor, autocast = read_scale(self.loss_scale), Autocast()

        def recompute() -> Tensor:
            with autocast.enter():
                losses = fill_missing(order_losses(self.tasks, *closure()))
                return factor * torch.stack(leave_out(losses, usable))

        first: list[Engine] = [DualNumbers(recompute, m, start, self._replay) for m in self._modules_of_shared]
        if not autocast.enabled:  # in low precision the small steps of differences are lost in rounding
            first.append(CentralDifferences(recompute, start, self._replay))
        return self._auto.prefer(*first, present=usable.tolist())

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
            "round": name_parts(self._rounds.now),
            "engines": self._auto.state_dict(),
        }
        # Some tools refuse a tensor whose size differs from that of a fresh model, so there is room for longer numbers.
        return pack(state, room=8192 + 512 * len(self.tasks))

    def set_extra_state(self, state: Tensor | State) -> None:
        """Continues exactly where ``state`` was saved, also on a fresh instance. Settings may have changed."""
        saved = read_state(state, self.tasks, self.method, self._memory)
        self._calls, self._calls_to_wait = saved["calls"], saved["calls_to_wait"]
        if self.method.needs().losses:  # weights that never change come from the settings
            self._weights = saved["weights"].cpu().clone()
            self._memory = fill(self.method.init(self._weights), saved["memory"])
        self._window_state = fill_progress(initial_state(self._weights), saved["convergence"])
        if self.convergence is None and self.converged:
            self.reset()
        # What older formats lack, and what counts positions of tasks that have changed, begins again.
        in_place = saved["tasks"] == list(self.tasks)
        if in_place and "round" in saved:
            self._rounds.restore(fill(self._rounds.now, saved["round"]))
        if in_place and "engines" in saved:
            self._auto.load_state_dict(saved["engines"])

    def extra_repr(self) -> str:
        """Method, tasks and schedule."""
        return f"{self.method}, tasks={list(self.tasks)}, every={self.every}"


def _products(signals: Signals) -> list[Tensor]:
    return [part for part in (signals.alignment, signals.gram, signals.norms) if part is not None]


def _to_memory(values: Tensor) -> Tensor:
    """Measured numbers, in the form that methods see and remember."""
    return values.detach().cpu().to(torch.float64)
