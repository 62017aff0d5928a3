"""The module a user holds: it takes named losses and returns one scalar."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.amp import GradScaler

from arml._distributed import Group
from arml.arguments import check_given, check_settings, choose_method
from arml.convergence import Convergence, WindowState, initial_state
from arml.fade import Fade
from arml.gradients.backward import Engine
from arml.gradients.kept import keep_gradients
from arml.gradients.shared import Shared
from arml.gradients.signals import Signals
from arml.joint import joint_loss
from arml.losses import Aux, Batch, Closure, average_losses, check_names, fill_missing, multiply, take_batch
from arml.methods.base import Method
from arml.observer import Observer, products_of, to_memory
from arml.packing import State, pack
from arml.precision import LossScale, read_scale
from arml.reuse import backward_from_tasks, find_factors, find_reusable
from arml.rounds import Rounds
from arml.schedule import Constant, Growing, check_whole
from arml.state import fill, fill_progress, name_parts, read_state
from arml.together import Processes, check_not_sharded, describe
from arml.units import LossScales, no_sizes
from arml.watch import Watchers, draw_bars, html_bars


class Reweighter(nn.Module):
    """Learns how much each auxiliary loss counts, inside the caller's training loop.

    Returns ``main + share * sum_k weight_k * unit_k * aux_scale * aux_k``. The weights are chosen by ``method``. The
    share is 1, or ``fade`` lets it fall over the run. ``units`` bring losses to one scale; else they are 1. The caller
    still calls ``backward()`` and does everything after it.

    >>> trunk, head, rotation = nn.Linear(3, 2), nn.Linear(2, 1), nn.Linear(2, 1)
    >>> reweighter = Reweighter(tasks=["rotation"], shared=trunk)
    >>> features = trunk(torch.ones(4, 3))
    >>> loss = reweighter(main=head(features).mean(), aux={"rotation": rotation(features).mean()})
    >>> loss.backward()
    >>> reweighter.weights
    {'rotation': 1.0}
    >>> reweighter
    Reweighter(Agreement(...), weights={'rotation': 1}, every=...)

    Tasks may be missing from a batch: leave them out of ``aux`` (or pass ``main=None``). An update then goes on over
    the next calls until all tasks have been met. A task whose loss or gradient is not finite counts as missing. Under
    ``torch.distributed`` every process must make the same calls; all hold the same weights as one process would on the
    whole batch.

    Weights and memory live on the CPU in float64, whatever the model's device and precision, and are part of
    ``state_dict()``: training continues exactly from a checkpoint.
    """

    def __init__(
        self,
        method: Method[Any] | None = None,
        tasks: Sequence[str] | None = None,
        shared: Shared | None = None,
        *,
        every: int | Growing | None = None,
        units: bool | None = None,
        aux_scale: float = 1.0,
        train_on_main: bool = True,
        fade: Fade | None = None,
        convergence: Convergence | None = Convergence(),  # noqa: B008 -- frozen
        engine: Engine | None = None,
        loss_scale: LossScale = None,
        process_group: Group = None,
    ) -> None:
        """Measures nothing before the first call.

        Args:
            method: how losses and inner products become weights, such as ``ARML()``; ``None``: the recommended method.
            tasks: names of the auxiliary tasks.
            shared: what all tasks go through: a module, its parameters, or ``shared_parameters(model, "trunk")``.
            every: calls between two measurements of gradients, a constant or a ``Growing`` schedule; ``None``: the
                schedule of the method. Methods that need no gradients are updated at every call.
            units: whether every auxiliary loss is brought to the scale of the main loss, so that weights do not depend
                on the scale of losses; ``None``: if the method needs it, as the recommended one does.
            aux_scale: multiplies every auxiliary loss before anything else sees it.
            train_on_main: if ``False``, the main loss only steers the weights and is not part of the result.
            fade: lets the auxiliary part fall to 0 over the run, such as ``LinearFade(until=0.8, total=1000)``;
                ``None``: it always counts in full. Gradients are measured as if there were no fade.
            convergence: when to stop measuring; ``None``: never, and a converged state that is loaded learns on.
            engine: how inner products are computed; ``None``: by the cheapest engine that works.
            loss_scale: multiplies losses while gradients are measured, so that float16 does not turn them into zeros: a
                number, or the ``torch.amp.GradScaler`` of the loop. The returned loss does not have it.
            process_group: the ``torch.distributed.ProcessGroup`` that trains this model; ``None``: all processes.
        """
        super().__init__()
        method, (tasks, shared) = choose_method(method), check_given(tasks, shared)
        check_settings(aux_scale, fade, train_on_main=train_on_main)
        self.method, self.tasks, self.fade = method, check_names(tasks), fade
        self.every = method.schedule() if every is None else every
        self.units = method.needs().units if units is None else units
        self.aux_scale, self.train_on_main = aux_scale, train_on_main
        self._schedule = self.every if isinstance(self.every, Growing) else Constant(self.every)
        self.convergence = convergence
        self.signals: Signals | None = None
        """The input of the last update, for records and plots."""
        self.watchers = Watchers()
        """Each is called with the losses [1 + K] of every training step, once the weights of the step are known."""

        # Not a module, so that nn.Module does not register the caller's model as a part of this one.
        self._observer = Observer(method, self.tasks, shared, engine=engine, loss_scale=loss_scale)

        # On the CPU, also when the model is made under torch.device("meta") or another default device.
        like = torch.zeros(1 + len(self.tasks), dtype=torch.float64, device="cpu")
        self._weights, self._memory = method.update(method.init(like), Signals(like, present=like.bool()))
        self._scales = LossScales(like, aux_scale, in_units=self.units)
        self._keep(initial_state(self._weights))
        self._rounds = Rounds(like)
        self._steps, self._calls, self._calls_to_wait = 0, 0, 0
        self._processes, self._counts_examples = Processes(process_group), False
        if self._measures_gradients() or self.units:
            check_not_sharded(self._observer.measured, *self._observer.modules)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of every auxiliary task."""
        return dict(zip(self.tasks, self._weights[1:].tolist(), strict=True))

    @property
    def factors(self) -> dict[str, float]:
        """What every auxiliary loss is multiplied by: its weight, times its unit, ``aux_scale`` and the share."""
        return dict(zip(self.tasks, self._factors()[1:], strict=True))

    @property
    def main_weight(self) -> float:
        """The weight of the main task: 1, unless the method chooses it, too."""
        return float(self._weights[0])

    @property
    def share(self) -> float:
        """What the auxiliary part is multiplied by at the next call: 1, unless there is a ``fade``."""
        return 1.0 if self.fade is None else self.fade.share(self._steps)

    @property
    def steps(self) -> int:
        """Calls in training mode so far, with gradients on."""
        return self._steps

    @property
    def engine(self) -> Engine | None:
        """How inner products are computed; ``None``: by the cheapest engine that works."""
        return self._observer.engine

    @engine.setter
    def engine(self, engine: Engine | None) -> None:
        self._observer.engine = engine

    @property
    def loss_scale(self) -> LossScale:
        """What losses are multiplied by while gradients are measured."""
        return self._observer.loss_scale

    @loss_scale.setter
    def loss_scale(self, loss_scale: LossScale) -> None:
        self._observer.set_loss_scale(loss_scale)

    @property
    def converged(self) -> bool:
        """Whether the weights have settled; from then on no gradient is measured."""
        return self._converged

    @property
    def update_due(self) -> bool:
        """Whether the next call in training mode measures anything; only then it looks at ``steer``."""
        return self._can_learn() and self._is_update_due()

    @property
    def active_tasks(self) -> tuple[str, ...]:
        """The auxiliary tasks whose loss can change anything at the next call. The others need not be computed.

        All tasks where an update is due; else those that count in the sum, and those that later updates would not wait
        for unless they show up.
        """
        if self.update_due:
            return self.tasks
        counts = [factor > 0 for factor in self._factors()]
        if self._can_learn():
            counts = [c or not awaited for c, awaited in zip(counts, self._rounds.now.expected.tolist(), strict=True)]
        return tuple(name for name, c in zip(self.tasks, counts[1:], strict=True) if c)

    def needs(self, task: str) -> bool:
        """Whether the loss of ``task`` can change anything at the next call; if not, it need not be computed."""
        if task not in self.tasks:
            raise ValueError(f"Unknown auxiliary task {task!r}. Known: {', '.join(self.tasks)}.")
        return task in self.active_tasks

    def directions(self) -> Tensor | None:
        """The directions [D, 1 + K] that the method asks for at the next update; ``None``: it needs no gradients."""
        return self.method.directions(self._memory)

    def read_shared(self) -> dict[str, Tensor]:
        """The shared parameters by name, or the layer of them that the method names.

        Gradients are compared on them, or on those next to the losses (``Needs.nearest``).
        """
        return self._observer.read_shared()

    def reset(self) -> None:
        """Forgets that the weights have converged, and goes on learning from the present weights at the next call.

        For data or losses that have changed. The method keeps the rest of its memory, the schedule its count of calls,
        and the fade its place.
        """
        self._keep(initial_state(self._weights))
        if "weights" in self._memory._fields:
            self._memory = self._memory._replace(weights=self._weights)
        self._calls_to_wait = 0

    def forward(
        self,
        main: Tensor | None = None,
        aux: Aux | None = None,
        *,
        steer: Tensor | None = None,
        closure: Closure | None = None,
        num_examples: int | None = None,
        counts: Mapping[str, float] | None = None,
    ) -> Tensor:
        """Returns the joint loss. In training mode, with gradients enabled, it may update the weights first.

        Args:
            main: the main loss, a scalar; ``None`` when the batch has no main labels.
            aux: auxiliary losses by task name; a task may be missing.
            steer: the main loss on another batch, or on labels the network does not train on. It is measured in
                place of ``main``, and not trained on. Looked at only where an update is due; ``None``: ``main`` steers.
            closure: recomputes ``(main, aux)``, which makes updates cheaper. Given alone, it also computes the losses
                themselves, and later calls repeat its random draws (dropout, augmentation) exactly.
            num_examples: the examples in this process's part of the batch, if the parts differ in size: processes then
                count by their examples. Give it on all processes and at every call, or leave it out.
            counts: what the losses of some tasks count in this sum, in place of their weights, as
                :class:`arml.SourceSampler` says for a source that it has drawn. What is measured stays the same.
        """
        batch = self._take_batch(main, aux, steer, closure, num_examples, counts)
        self._learn_from(batch, num_examples)
        loss = self._joint_loss(batch.losses, batch.counts)
        self._count_step()
        return loss

    def backward(
        self,
        main: Tensor | None = None,
        aux: Aux | None = None,
        *,
        steer: Tensor | None = None,
        closure: Closure | None = None,
        num_examples: int | None = None,
        counts: Mapping[str, float] | None = None,
        scaler: GradScaler | None = None,
    ) -> Tensor:
        """Fills ``.grad`` as ``reweighter(main, aux).backward()`` does, at less cost where an update stored gradients.

        Without a closure and with at most two auxiliary tasks, an update computes the gradient of every task. Their sum
        then replaces the backward pass through the shared parameters. In all other cases this is the call and
        ``backward()``. Under ``torch.distributed``, too: hooks of ``DistributedDataParallel`` must fire.

        The losses keep their graph until you drop them. A backward pass that is not linear, such as one through a hook
        on a feature map that clips its gradient, sees one task at a time.

        Args:
            main: as in a call of the Reweighter; so are all others but ``scaler``.
            aux: auxiliary losses by task name.
            steer: the main loss on another batch.
            closure: recomputes ``(main, aux)``.
            num_examples: the examples in this process's part of the batch.
            counts: what the losses of some tasks count, in place of their weights.
            scaler: multiplies the gradients, as ``scaler.scale(loss).backward()`` does.

        Returns:
            The joint loss, without scale and without graph.
        """
        before = self.signals
        with keep_gradients() as keeper:
            batch = self._take_batch(main, aux, steer, closure, num_examples, counts)
            self._learn_from(batch, num_examples)
        joint = self._joint_loss(batch.losses, batch.counts)
        scaled: Tensor = joint if scaler is None else scaler.scale(joint)
        # Without an update, gradients may not be finite; with another scale, they may have lost small numbers.
        updated = self.signals is not before  # asked first: reading a scale waits for the device
        same_scale = updated and (scaler is None or read_scale(self.loss_scale) == read_scale(scaler))
        reusable = closure is None and steer is None and same_scale
        kept = find_reusable(keeper, batch.losses) if reusable else None
        if kept is None:
            keeper.last = None  # gradients of all tasks would only take memory during the pass
            scaled.backward()
        else:
            unit = 1.0 if scaler is not None else 1 / read_scale(self.loss_scale)
            factors = find_factors(lambda losses: self._joint_loss(losses, batch.counts), batch.losses)
            backward_from_tasks(scaled, kept, [None if f is None else unit * f for f in factors])
        self._count_step()
        return joint.detach()

    def _take_batch(
        self,
        main: Tensor | None,
        aux: Aux | None,
        steer: Tensor | None,
        closure: Closure | None,
        num_examples: int | None,
        counts: Mapping[str, float] | None,
    ) -> Batch:
        try:
            if num_examples is not None or self._counts_examples:
                self._check_num_examples(num_examples)
            return take_batch(self.tasks, main, aux, steer, closure, num_examples, counts)
        except Exception as error:
            self._announce(error)
            raise

    def _learn_from(self, batch: Batch, num_examples: int | None) -> None:
        if self._learns():
            if not self._processes.agreed:
                self._agree(num_examples)
            if self._can_learn():
                self._learn(batch)
        if self.training and torch.is_grad_enabled():
            for watch in self.watchers:
                watch(batch.losses)

    def _joint_loss(self, losses: Sequence[Tensor | None], counts: Mapping[str, float]) -> Tensor:
        return joint_loss(
            self.tasks, losses, self._factors(counts), faded_out=self.share == 0, train_on_main=self.train_on_main
        )

    def _count_step(self) -> None:
        if self.training and torch.is_grad_enabled():
            self._steps += 1

    def _learns(self) -> bool:
        return self.training and torch.is_grad_enabled() and self._looks_at_losses()

    def _looks_at_losses(self) -> bool:
        return self.method.needs().losses or self.units

    def _can_learn(self) -> bool:
        """Whether weights may still change, and would make a difference; else nothing is measured any more."""
        return self._looks_at_losses() and not self.converged and self.share != 0

    def _learn(self, batch: Batch) -> None:
        """Counts the call, and updates the weights if it is time."""
        self._rounds.notice(batch.measured)
        if self._is_update_due():
            self._calls_to_wait = 0
            with self._processes():
                self._update(batch)
        else:
            self._calls_to_wait -= 1
        self._calls += 1

    def _is_update_due(self) -> bool:
        return self._calls_to_wait <= 1 or not self._measures_gradients()

    def _agree(self, num_examples: int | None) -> None:
        """Once: raises, on all processes, unless their updates will match."""
        measured, modules = self._observer.read_shared(), self._observer.modules
        if self._measures_gradients() or self.units:
            check_not_sharded(measured, *modules)
        self._counts_examples = num_examples is not None
        facts = {
            "`tasks`": list(self.tasks),
            "`method`": describe(self.method),
            "`every`": describe(self.every),
            "`units`": self.units,
            "`aux_scale`": self.aux_scale,
            "`fade`": describe(self.fade),
            "the number of calls so far": self._calls,
            "the number of training steps so far": self._steps,
            "the weights": self.weights,
            "whether `num_examples` is given": self._counts_examples,
            "the number of shared parameters": sum(p.numel() for p in measured.values() if p.requires_grad),
        }
        self._processes.agree(facts, measured.values())

    def _announce(self, error: Exception) -> None:
        """If the other processes wait for this one at this call, raises ``error`` here and there."""
        if self._learns() and (self.update_due or not self._processes.agreed):
            device = next(iter(self._observer.measured.values())).device
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

    def _measure_units(self, losses: Sequence[Tensor], values: Tensor, scale: Tensor, usable: Tensor) -> None:
        """Remembers the sizes of the losses, and measures the gradients of tasks with outputs of their own."""
        same = self._observer.outputs.same()
        due = usable & self._scales.are_due(self._calls, same)
        lengths = self._observer.measure_lengths(losses, scale, due) if bool(due.any()) else torch.zeros_like(values)
        self._scales.learn(values, usable, lengths, due, self._calls, same)

    def _factors(self, counts: Mapping[str, float] | None = None) -> list[float]:
        """What every loss is multiplied by, [1 + K]; ``counts`` take the place of weights."""
        weights: list[float] = self._weights.tolist()
        if counts:
            weights = [weights[0], *(counts.get(name, w) for name, w in zip(self.tasks, weights[1:], strict=True))]
        # As numbers: a product of tensors per loss would add K nodes to every graph.
        weights, share = self._scales.times(weights), self.share
        return weights if share == 1 else [weights[0], *(w * share for w in weights[1:])]

    def _measures_gradients(self) -> bool:
        needs = self.method.needs()
        return needs.gram or needs.norms or self.directions() is not None

    def _update(self, batch: Batch) -> None:
        """Updates the weights, if what this batch and those before it show is enough for it."""
        self._observer.call_main(batch.steering_name)
        local, held = fill_missing(batch.measured), torch.tensor([loss is not None for loss in batch.measured])
        everywhere = average_losses(torch.stack(local), held, self._rounds.now.expected, batch.num_examples)
        if everywhere.factor != 1:
            local = [everywhere.factor * loss for loss in local]
            batch = batch._replace(closure=multiply(batch.closure, everywhere.factor))
        present, values = everywhere.present, to_memory(everywhere.values)
        usable = present & self._observer.find_finite(everywhere.values)
        device = everywhere.values.device
        if self.method.needs().outputs or self.units:
            self._observer.outputs.look_at(batch.measured, device)
        if self._measures_gradients() and self._observer.find_measured(batch.measured, device):
            self._rounds.clear()  # gradients of tasks on other parameters cannot be compared
        if self.units:
            self._measure_units(local, values, to_memory(everywhere.scale), usable)
        scale = to_memory(everywhere.scale) * self._scales.all
        values = torch.where(usable, values * self._scales.all, 0.0)
        self._rounds.expect(everywhere.expected)
        stride, signals = 1.0, Signals(values, present=usable)
        if self._measures_gradients():
            found = self._measure(signals, local, scale, present, batch)
            if found is None:
                return  # not enough to compare: the next call tries again
            self._calls_to_wait = self._schedule.after(self._calls)
            signals, stride = found, self._schedule.stride(self._calls_to_wait)
        if self.method.needs().outputs:
            signals = signals._replace(same_outputs=self._observer.outputs.same())
        if self.units:
            signals = signals._replace(lengths=self._scales.recent_lengths())
        self.signals = signals._replace(stride=stride)
        weights, self._memory = self.method.update(self._memory, self.signals)
        # Without the main loss there must be something left to train on.
        self._weights = weights if self.train_on_main or bool(weights[1:].any()) else self._weights
        self._judge_convergence(self.signals)

    def _measure(
        self, known: Signals, losses: Sequence[Tensor], scale: Tensor, present: Tensor, batch: Batch
    ) -> Signals | None:
        """``known`` with products: of this batch if it holds all tasks, else of the round that ends with it, if any."""
        observer, rounds = self._observer, self._rounds
        if not self.method.needs().each_batch and not rounds.is_covered_by(present):
            observer.add_to_round(rounds, known, losses, scale)
            return rounds.end(present, self.method, self._memory)
        signals = observer.measure_batch(known, losses, scale, self._memory, batch.closure, batch.start)
        if signals is not None:
            rounds.clear()
        return signals

    def _judge_convergence(self, signals: Signals) -> None:
        # Products that are all 0, as of a frozen trunk, say nothing about where the weights belong; and weights that
        # could not move, because a single task was compared, have not settled.
        informative = any(bool(part.any()) for part in products_of(signals))
        enough = int(signals.seen()[1:].sum()) >= min(2, len(self.tasks))
        if self.convergence is None or not informative or not enough:
            return
        state = self.convergence.update(self._window_state, self._weights)
        if not self.method.can_move(len(self.tasks)):
            state = state._replace(average=self._weights, settled=torch.ones_like(state.settled))
        self._keep(state)
        if self.converged:
            self._weights = self.method.settle(self._window_state.average, self._weights)

    def _keep(self, state: WindowState) -> None:
        self._window_state = state
        self._converged = bool(state.settled)  # read once: reading a tensor at every call would cost an operation

    def get_extra_state(self) -> Tensor:
        """Weights, memory and all counters as one tensor of bytes, which ``arml.packing.unpack`` reads."""
        state = {
            "tasks": list(self.tasks),
            "method": repr(self.method),
            "method_type": type(self.method).__qualname__,
            "steps": self._steps,
            "calls": self._calls,
            "calls_to_wait": self._calls_to_wait,
            "weights": self._weights,
            "sizes": name_parts(self._scales.losses),
            "lengths": name_parts(self._scales.gradients),
            "memory": name_parts(self._memory),
            "convergence": name_parts(self._window_state),
            "round": name_parts(self._rounds.now),
            "outputs": name_parts(self._observer.outputs.found),
            "last_layer": self._observer.last_layer.state_dict(),
            "next_two": self._observer.next_two.state_dict(),
            "engines": self._observer.auto.state_dict(),
            "regressions": self._observer.regressions.state_dict(),
        }
        # Some tools refuse a tensor whose size differs from that of a fresh model, so there is room for longer numbers.
        return pack(state, room=8192 + 512 * len(self.tasks) + self._observer.regressions.remembered.nbytes)

    def set_extra_state(self, state: Tensor | State) -> None:
        """Continues exactly where ``state`` was saved, also on a fresh instance. Settings may have changed."""
        saved = read_state(state, self.tasks, self.method, self._memory)
        self._calls, self._calls_to_wait = saved["calls"], saved["calls_to_wait"]
        self._steps = saved.get("steps", self._calls)  # older versions counted no steps after convergence
        if self.method.needs().losses:  # weights that never change come from the settings
            self._weights = saved["weights"].cpu().clone()
            self._memory = fill(self.method.init(self._weights), saved["memory"])
        self._keep(fill_progress(initial_state(self._weights), saved["convergence"]))
        if self.convergence is None and self.converged:
            self.reset()
        # What older formats lack, and what counts positions of tasks that have changed, begins again.
        self._observer.outputs.restore(saved.get("outputs", {}))
        self._observer.last_layer.restore(saved.get("last_layer", {}))
        self._observer.next_two.restore(saved.get("next_two", {}))
        self._observer.regressions.restore(saved.get("regressions", {}))
        sizes, lengths = (fill(no_sizes(self._weights), saved.get(part, {})) for part in ("sizes", "lengths"))
        self._scales.restore(sizes, lengths, self._observer.outputs.same())
        in_place = saved["tasks"] == list(self.tasks)
        if in_place and "round" in saved:
            self._rounds.restore(fill(self._rounds.now, saved["round"]))
        if in_place and "engines" in saved:
            self._observer.auto.load_state_dict(saved["engines"])

    def plot(self) -> Any:
        """The weights as bars, an axis of matplotlib."""
        return draw_bars(self.weights)

    def _repr_html_(self) -> str:
        return html_bars(f"{self.method}, {self.steps} steps", self.weights)

    def extra_repr(self) -> str:
        """Method, current weights (of ten tasks at most) and schedule."""
        shown = [f"{name!r}: {weight:.3g}" for name, weight in self.weights.items()]
        more = f", ... {len(shown) - 10} more" if len(shown) > 10 else ""
        state = ", converged" if self.converged else ""
        return f"{self.method}, weights={{{', '.join(shown[:10])}{more}}}, every={self.every}{state}"
