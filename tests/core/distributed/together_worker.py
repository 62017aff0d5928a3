"""One process of several that must stay in step. What every process met goes into a JSON file.

::

    python -m torch.distributed.run --standalone --nproc_per_node 2 together_worker.py OUTPUT [ending]

The file maps each scenario to a list with one entry per rank: numbers, or the text of the error that was raised there.
"""

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from worker import METHODS, RANK, TASKS, WORLD, Losses, Net, Training, losses_of, shard, whole_batch

from arml import ARML, LinearFade, Reweighter
from arml.gradients import one_by_one

LAST = RANK == WORLD - 1
WAIT = timedelta(seconds=4)


def error_of(run: Callable[[], object]) -> str:
    """The error that ``run`` raises, and the seconds until then."""
    start = time.monotonic()
    try:
        run()
    except Exception as error:  # noqa: BLE001 -- whatever it is, it is recorded
        assert time.monotonic() - start < 60
        return f"{type(error).__name__}: {error}"
    return "no error"


def call(training: Training, step: int, **settings: Any) -> Tensor:
    """One call of the reweighter."""
    return training.joint(*losses_of(training.model, *shard(step)), **settings)


def goes_on(training: Training) -> bool:
    """Whether all processes can update the weights together after an error on one of them."""
    before = training.reweighter.weights
    call(training, 9)
    return training.reweighter.weights != before


def process_groups() -> list[list[float]]:
    """Every process trains a model of its own; process 0 alone, then in a group of one."""
    groups = [dist.new_group([rank]) for rank in range(WORLD)]
    net = Net().double()
    reweighter = Reweighter(ARML(lr=0.1), TASKS, net.trunk, every=1, process_group=groups[RANK])
    torch.manual_seed(RANK)
    for p in net.parameters():
        torch.nn.init.normal_(p)
    found = []
    for step in range(3):
        reweighter(*losses_of(net, *shard(step + RANK, rank=0, world=1)))
        found.append(list(reweighter.weights.values()))
    return found


def unequal_parts() -> dict[str, list[list[float]]]:
    """The first process has most of the batch; the joint loss is scaled so that DDP's mean is that of the batch."""
    found = {}
    for name, closure in [("ARML", False), ("ARML", True), ("GradNorm", False), ("AdaLoss", False)]:
        training = Training(METHODS[name])
        for step in range(3):
            x, targets = whole_batch(step)
            rows = slice(0, 13 - WORLD) if RANK == 0 else slice(12 - WORLD + RANK, 13 - WORLD + RANK)
            mine = x[rows], {task: target[rows] for task, target in targets.items()}

            def again(training: Training = training, mine: Any = mine) -> Losses:
                return losses_of(training.net, *mine)

            count = len(mine[0])
            given = losses_of(training.model, *mine)
            loss = training.joint(*given, num_examples=count, closure=again if closure else None)
            training.step(loss * count * WORLD / 12)
        found[name + ", closure" * closure] = training.weights
    return found


def error_before_the_first_update() -> tuple[str, bool]:
    training = Training(ARML(lr=0.1))
    main, aux = losses_of(training.model, *shard(0))
    text = error_of(lambda: training.reweighter(main, {**aux, "typo": main} if LAST else aux))
    return text, goes_on(training)


def error_at_a_later_update() -> tuple[str, bool]:
    training = Training(ARML(lr=0.1))
    call(training, 0)
    text = error_of(lambda: training.reweighter() if LAST else call(training, 1))
    return text, goes_on(training)


def error_in_a_closure() -> tuple[str, bool]:
    training = Training(ARML(lr=0.1))
    call(training, 0)

    def closure() -> Losses:
        if LAST:
            raise KeyError("a broken file")
        return losses_of(training.net, *shard(1))

    text = error_of(lambda: training.reweighter(closure=closure))
    return text, goes_on(training)


def error_in_an_engine() -> tuple[str, bool]:
    """The closure fails when it is called again, in the middle of an update."""
    training = Training(ARML(lr=0.1))

    def closure() -> Losses:
        if LAST:
            raise KeyError("a broken file")
        return losses_of(training.net, *shard(1))

    text = error_of(lambda: call(training, 1, closure=closure))
    return text, goes_on(training)


def memory_runs_out_in_an_engine() -> tuple[str, bool]:
    training = Training(ARML(lr=0.1))

    failed: list[bool] = []

    def engine(*args: Any) -> Tensor:
        if LAST and not failed:
            failed.append(True)
            raise torch.OutOfMemoryError("no memory left")
        return one_by_one(*args)

    training.reweighter.engine = engine
    text = error_of(lambda: training.reweighter(*losses_of(training.model, *shard(0))))
    return text, goes_on(training)


def graph_is_gone() -> tuple[str, bool]:
    """One process has freed its graph before the update, so every engine fails there, also the last."""
    training = Training(ARML(lr=0.1), engine=one_by_one)
    main, aux = losses_of(training.net, *shard(0))
    if LAST:
        (main + sum(aux.values())).backward()
    text = error_of(lambda: training.reweighter(main, aux))
    return text, goes_on(training)


def other_tasks() -> str:
    net = Net().double()
    reweighter = Reweighter(ARML(), TASKS[::-1] if LAST else TASKS, net.trunk)
    return error_of(lambda: reweighter(*losses_of(net, *shard(0))))


def other_settings() -> str:
    net = Net().double()
    reweighter = Reweighter(ARML(lr=0.1 * (1 + RANK)), TASKS, net.trunk)
    return error_of(lambda: reweighter(*losses_of(net, *shard(0))))


def other_fades() -> str:
    net = Net().double()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, fade=LinearFade(9) if LAST else None)
    return error_of(lambda: reweighter(*losses_of(net, *shard(0))))


def other_checkpoints() -> str:
    """One process alone resumes, from a state that waits for its next update."""
    training = Training(ARML(lr=0.1), every=5)
    other = Training(ARML(lr=0.1), every=5)
    call(other, 0)
    if LAST:
        training.reweighter.load_state_dict(other.reweighter.state_dict())
    return error_of(lambda: call(training, 0))


def other_frozen_parameters() -> str:
    net = Net().double()
    net.trunk[0].requires_grad_(not LAST)
    reweighter = Reweighter(ARML(), TASKS, net.trunk)
    return error_of(lambda: reweighter(*losses_of(net, *shard(0))))


def num_examples_on_one_process() -> str:
    training = Training(ARML())
    return error_of(lambda: call(training, 0, num_examples=3 if LAST else None))


def num_examples_forgotten_later() -> tuple[str, bool]:
    training = Training(ARML())
    call(training, 0, num_examples=3)
    text = error_of(lambda: call(training, 1, num_examples=None if LAST else 3))
    call(training, 1, num_examples=3)
    return text, True


def sharded_parameters() -> list[str]:
    from torch.distributed.fsdp import fully_shard

    before, after = Net(), Net()
    reweighter = Reweighter(ARML(), TASKS, before.trunk)
    for net in (before, after):
        fully_shard(net.trunk)
    x, targets = shard(0)
    later = error_of(lambda: reweighter(*losses_of(before, x.float(), {n: t.float() for n, t in targets.items()})))
    return [later, error_of(lambda: Reweighter(ARML(), TASKS, after.trunk))]


def uneven_inputs() -> str:
    training = Training(ARML())

    def train() -> None:
        with training.model.join():
            for step in range(3 - LAST):
                training.step(call(training, step))

    return error_of(train)


def silent_process() -> str:
    """A process that stays alive and makes no call, in a group with a short timeout."""
    group = dist.new_group(timeout=WAIT)
    net = Net().double()
    reweighter = Reweighter(ARML(), TASKS, net.trunk, every=1, process_group=group)
    reweighter(*losses_of(net, *shard(0)))
    found = "silent" if LAST else error_of(lambda: reweighter(*losses_of(net, *shard(1))))
    dist.barrier()
    return found


def ending() -> str:
    """A process that ends in the middle of training."""
    training = Training(ARML(lr=0.1))
    call(training, 0)
    if LAST:
        os._exit(0)
    return error_of(lambda: call(training, 1))


SCENARIOS: list[Callable[[], Any]] = [
    process_groups,
    unequal_parts,
    error_before_the_first_update,
    error_at_a_later_update,
    error_in_a_closure,
    error_in_an_engine,
    memory_runs_out_in_an_engine,
    graph_is_gone,
    other_tasks,
    other_settings,
    other_fades,
    other_checkpoints,
    other_frozen_parameters,
    num_examples_on_one_process,
    num_examples_forgotten_later,
    sharded_parameters,
    uneven_inputs,
    silent_process,
]


def main(output: Path, *names: str) -> None:
    """Runs the scenarios and writes what all ranks met."""
    torch.set_num_threads(1)
    warnings.simplefilter("error", UserWarning)
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    if names == ("ending",):
        output.write_text(json.dumps({"ending": [ending()]}))
        return
    mine = {}
    for scenario in SCENARIOS:
        if not names or scenario.__name__ in names:
            mine[scenario.__name__] = scenario()
    ranks: list[Any] = [None] * WORLD
    dist.all_gather_object(ranks, mine)
    if RANK == 0:
        output.write_text(json.dumps({name: [rank[name] for rank in ranks] for name in mine}))
    dist.barrier()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
    sys.stdout.flush()
    os._exit(0)  # everything is written; torch's remaining threads may abort a process that ends by itself
