"""Turns the losses of a batch, or of a round of batches, into the signals that a method sees."""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from arml.connection import Connection
from arml.gradients.auto import Auto
from arml.gradients.backward import Engine, TaskLosses, double_backward, record_touched, take_unit_directions
from arml.gradients.forward import CentralDifferences, DualNumbers, RandomState, Replay
from arml.gradients.graph import leaves
from arml.gradients.measure import alignment, gram, norms
from arml.gradients.regression import Regressions
from arml.gradients.rows import measure_wanted, read_own_rows, read_rows
from arml.gradients.shared import Shared, is_read_anew, keep_readable, parameters_by_name, parameters_of_layer
from arml.gradients.signals import Signals
from arml.gradients.sketch import TaskProducts, measure_tasks
from arml.gradients.transfer import measure_own, measure_transfer
from arml.losses import Closure, fill_missing, leave_out, order_losses
from arml.methods.base import Method
from arml.nearest import Nearest, next_two
from arml.outputs import Outputs
from arml.precision import Autocast, LossScale, Precision, check_loss_scale, read_scale
from arml.rounds import Rounds


class Observer:
    """Measures gradients for one method, and reports, once each, what stands in the way of measuring them."""

    def __init__(
        self,
        method: Method[Any],
        tasks: Sequence[str],
        shared: Shared,
        *,
        engine: Engine | None = None,
        loss_scale: LossScale = None,
    ) -> None:
        """The arguments are those of :class:`arml.Reweighter`."""
        self.method, self.tasks, self.engine = method, tuple(tasks), engine
        self.set_loss_scale(loss_scale)
        self._shared = keep_readable(shared)
        self.modules = (shared,) if isinstance(shared, nn.Module) else ()
        self.measured = self.read_shared()
        self.auto, self._replay = Auto(), Replay(*self.modules)
        self._connection = Connection(self.tasks, read_anew=is_read_anew(shared))
        self._precision = Precision()
        self._warned: set[str] = set()
        self.outputs = Outputs(len(self.tasks))
        self.last_layer, self.next_two = Nearest(1 + len(self.tasks)), Nearest(1 + len(self.tasks), next_two)
        self.regressions = Regressions(len(self.tasks) if method.needs().answers else 0)
        self._steering_name = "main"

    def set_loss_scale(self, loss_scale: LossScale) -> None:
        """Multiplies losses by ``loss_scale`` from now on, while gradients are measured."""
        check_loss_scale(loss_scale)
        self.loss_scale = loss_scale

    def call_main(self, name: str) -> None:
        """Warnings from now on call the first loss ``name``: it may be a held-out one."""
        self._steering_name = self._connection.main_name = name

    def read_shared(self) -> dict[str, Tensor]:
        """The shared parameters, as the network has them now, or the layer of them that the method names."""
        return parameters_of_layer(parameters_by_name(self._shared), self.method.needs().layer)

    def find_measured(self, losses: Sequence[Tensor | None], device: torch.device) -> bool:
        """Reads the shared parameters again, and finds those to measure. Returns whether there are further ones."""
        self.measured = shared = self.read_shared()
        if not self.method.needs().nearest:
            return False
        is_wider = self.last_layer.look_at(losses, shared, device)
        self.measured = self.last_layer.choose(shared)
        return is_wider

    def measure_batch(
        self,
        known: Signals,
        losses: TaskLosses,
        scale: Tensor,
        memory: Any,
        closure: Closure | None,
        start: RandomState | None,
    ) -> Signals | None:
        """``known`` with the products of this batch, without tasks that are not finite; ``None``: none can be had.

        Where answers tell about every task, nothing else is measured.

        Args:
            known: losses, and which tasks any process holds.
            losses: the losses of this process, with their graphs.
            scale: multiplies the gradient of each task, [1 + K].
            memory: the method's.
            closure: recomputes the losses of this process, if there is one.
            start: the random state before the closure computed them.
        """
        usable = known.seen()
        for _ in range(2):
            if not bool(usable[0] & usable[1:].any()):
                return None
            given = leave_out(losses, usable)
            seen = Signals(torch.where(usable, known.losses, 0.0), present=usable)
            seen, wanted = self._compare_answers(seen, given) if self.method.needs().answers else (seen, None)
            if wanted is not None and bool(self.outputs.same()[usable[1:]].all()):
                self._check_measured(given, leaves(given), [wanted])
                return seen
            with record_touched() as touched, take_unit_directions(enabled=read_scale(self.loss_scale) != 1):
                signals = self._observe(given, scale, memory, self._choose_engine(closure, start, usable))
            if all(bool(part.isfinite().all()) for part in products_of(signals)):
                self._check_measured(given, touched, products_of(signals))
                seen = seen._replace(alignment=signals.alignment, gram=signals.gram, norms=signals.norms)
                return self._ask_own(seen, given) if self.method.needs().answers else seen
            # One gradient that is not finite spoils every product with the direction; only the norms show whose it is.
            finite = self.find_finite(norms(given, self.measured) if signals.norms is None else signals.norms)
            if bool(finite.all()):
                self._precision.report_overflow(self.loss_scale)
                return None
            usable = usable & finite
        return None

    def _compare_answers(self, known: Signals, losses: TaskLosses) -> tuple[Signals, Tensor | None]:
        """``known`` with the answers of tasks that train the main outputs, and how much those losses want of them.

        The latter are sums of squares, [1 + K], 0 for all other tasks; ``None`` if answers cannot be compared.
        """
        rivals = (known.seen()[1:] & self.outputs.same()).nonzero().flatten() + 1
        factor = read_scale(self.loss_scale)
        scaled = [factor * loss for loss in losses]
        rows = read_rows(scaled, rivals.tolist()) if len(rivals) else None
        by_output = None if rows is None else to_memory(measure_wanted(rows))
        if rows is None or by_output is None or not _use_main_outputs(by_output):
            return known, None
        transfer, own, alternatives, peers = measure_transfer(scaled, rows, self.regressions)
        if not bool(transfer[1, 1:].any()):
            return known, None
        wanted = torch.zeros_like(known.losses)
        wanted[list(rows)] = by_output.sum(1).to(wanted)
        transfer, peers = transfer.nan_to_num(0.0), peers.nan_to_num(0.0)
        seen = known._replace(transfer=transfer, own_transfer=own, alternatives=alternatives, peers=peers)
        return seen, wanted

    def _ask_own(self, known: Signals, losses: TaskLosses) -> Signals:
        """``known`` with how well tasks with heads of their own answer their next examples."""
        tasks = (known.seen()[1:] & ~self.outputs.same()).nonzero().flatten() + 1
        if not len(tasks):
            return known
        factor = read_scale(self.loss_scale)
        scaled = [factor * loss for loss in losses]
        rows = read_own_rows(scaled, tasks.tolist(), self.read_shared().values())
        own = measure_own(scaled, rows, self.regressions).nan_to_num(0.0)
        return known._replace(own_transfer=own if known.own_transfer is None else known.own_transfer + own)

    def measure_lengths(self, losses: TaskLosses, scale: Tensor, usable: Tensor) -> Tensor:
        """About how long the gradient of each task is, times ``scale``, [1 + K]; 0 for tasks that are not usable.

        It takes a pass per task, so it goes no further than the two parameters next to the losses.
        """
        factor, shared = read_scale(self.loss_scale), self.read_shared()
        self.next_two.look_at([loss if loss.requires_grad else None for loss in losses], shared, losses[0].device)
        given = leave_out(losses, usable)
        given = given if factor == 1 else [factor * loss for loss in given]
        return scale * to_memory(norms(given, self.next_two.choose(shared))) / factor

    def add_to_round(self, rounds: Rounds, known: Signals, losses: TaskLosses, scale: Tensor) -> None:
        """Adds to the round the tasks of this batch that it has not met yet."""
        tasks = rounds.tasks_to_measure(known.seen())
        if tasks:
            which = torch.zeros_like(known.seen())
            which[tasks] = True
            factor = read_scale(self.loss_scale)
            with record_touched() as touched:
                found = measure_tasks([factor * loss for loss in losses], self.measured, tasks)
            self._check_measured(leave_out(losses, which), touched, [found.squares])
            which &= self.find_finite(found.squares)
            scale = scale / factor
            scaled = TaskProducts(
                scale[0] * scale * found.with_main, scale.square() * found.squares, scale[:, None] * found.sketches
            )
            rounds.add(scaled, which, known.losses)

    def _check_measured(self, losses: TaskLosses, touched: set[int], products: Sequence[Tensor]) -> None:
        """Reports losses without a connection to the shared parameters, and those that float16 turned into zeros."""
        # What is measured next to the losses says nothing about the rest of the shared parameters; the graph does.
        shared = self.read_shared()
        touched = leaves(losses) if self.method.needs().nearest else touched
        vanished = self._connection.check(losses, shared, touched, products)
        self._precision.check_vanished(vanished, [losses[("main", *self.tasks).index(name)] for name in vanished])

    def _observe(self, losses: TaskLosses, scale: Tensor, memory: Any, engine: Engine | Auto) -> Signals:
        """Measures ``scale`` times the losses, whose gradients scale alike."""
        needs, directions = self.method.needs(), self.method.directions(memory)
        factor = read_scale(self.loss_scale)
        self._precision.check_scaled(self.loss_scale, losses)
        # The gradients of a direction and of a task are factor times too long: their product is divided by factor^2.
        scaled = losses if factor == 1 else [factor * loss for loss in losses]
        return Signals(
            torch.stack(list(losses)).detach(),
            None
            if directions is None
            else scale * to_memory(alignment(scaled, self.measured, directions * scale, engine=engine)) / factor**2,
            torch.outer(scale, scale) * to_memory(gram(scaled, self.measured)) / factor**2 if needs.gram else None,
            scale * to_memory(norms(scaled, self.measured)) / factor if needs.norms else None,
        )

    def _choose_engine(self, closure: Closure | None, start: RandomState | None, usable: Tensor) -> Engine | Auto:
        if self.engine is not None:
            return self.engine
        nearest = self.method.needs().nearest
        if closure is None or (nearest and len(usable) <= 3):
            return self.auto.prefer(present=usable.tolist())
        factor, autocast = read_scale(self.loss_scale), Autocast()

        def recompute() -> Tensor:
            with autocast.enter():
                losses = fill_missing(order_losses(self.tasks, *closure()))
                return factor * torch.stack(leave_out(losses, usable))

        first: list[Engine] = [DualNumbers(recompute, m, start, self._replay) for m in self.modules]
        if not autocast.enabled:  # in low precision the small steps of differences are lost in rounding
            first.append(CentralDifferences(recompute, start, self._replay))
        # Next to the losses, a second pass through the graph is shorter than a repetition of the forward pass.
        return self.auto.prefer(*([double_backward] if nearest else []), *first, present=usable.tolist())

    def find_finite(self, values: Tensor) -> Tensor:
        """[1 + K] of bool: which ``values`` are finite. Warns about the others, once per task."""
        fine = values.isfinite().cpu()
        names = [name for name, ok in zip((self._steering_name, *self.tasks), fine.tolist(), strict=True) if not ok]
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


def _use_main_outputs(wanted: Tensor) -> bool:
    """Whether every task wants something of an output of the main one, by what each wants of every output, [J, C]."""
    return bool(wanted.isfinite().all() and ((wanted > 0) & (wanted[0] > 0)).any(1).all())


def products_of(signals: Signals) -> list[Tensor]:
    """Whatever was measured of gradients."""
    parts = (signals.alignment, signals.gram, signals.norms, signals.transfer)
    return [part for part in parts if part is not None]


def to_memory(values: Tensor) -> Tensor:
    """Measured numbers, in the form that methods see and remember."""
    return values.detach().cpu().to(torch.float64)
