"""Every method, for the tests that hold for all of them. A new method joins by one line."""

from importlib.util import find_spec

import torch

import arml
from arml import Method, Signals

NUM_AUX = 4

EVERY_METHOD: list[Method] = [
    arml.Uniform(),
    arml.Fixed((0.5, 2.0, 0.0, 1.0)),
    arml.ARML(),
    arml.ARML(scale_free=True),
    arml.ARML(projection="shift_clamp"),
    arml.GatedARML(),
    arml.GatedARML(warmup=0),
    arml.GatedARML(arml=arml.ARML(scale_free=True)),
    arml.AdaLoss(),
    arml.GradNorm(),
    arml.CosineSim(),
    arml.OLAUX(),
    arml.OLAUX(horizon=2),
    arml.DWA(),
    arml.DWA(window=1),
    arml.UncertaintyWeighting(),
    arml.FAMO(),
    arml.MetaBalance(),
    arml.MetaBalance(strategy="shrink"),
    arml.WeightedCosineSim(),
    arml.PriPCGrad(),
    arml.TAWT(),
    arml.AutoLambda(),
    arml.AuxiNash(),
    arml.DoGE(),
    arml.EXP3(),
    arml.Agreement(),
    arml.Agreement(warmup=2, doubt=0),
]

KEEP_THE_SUM = [method for method in EVERY_METHOD if isinstance(method, arml.Uniform | arml.GradNorm)] + [
    arml.ARML(),
    arml.ARML(scale_free=True),
    arml.DoGE(),
]

# DWA and FAMO keep the sum while all tasks are present. A batch with one task tells them how its loss changes; if they
# kept the sum even then, no weight could ever change where tasks take turns.

NOT_PERMUTABLE = {
    repr(arml.Fixed((0.5, 2.0, 0.0, 1.0))): "its weights belong to positions",
}

FOR_SO_MANY_TASKS = {repr(arml.Fixed((0.5, 2.0, 0.0, 1.0)))}
"""Methods that are made for one number of tasks."""

MOVE_ABSENT_TASKS = {
    repr(arml.EXP3()): "the probabilities of all sources sum to 1",
}

if find_spec("torchjd"):  # an extra: the core is tested without it, too
    from torchjd.aggregation import MGDAWeighting, PCGradWeighting, UPGradWeighting
    from torchjd.scalarization import STCH, UW, Random

    EVERY_METHOD += [arml.TorchJD(UPGradWeighting()), arml.TorchJD(MGDAWeighting()), arml.TorchJD(PCGradWeighting())]
    EVERY_METHOD += [arml.TorchJDScalarizer(one) for one in (STCH(mu=0.1), UW(1 + NUM_AUX), Random())]
    FOR_SO_MANY_TASKS.add(repr(arml.TorchJDScalarizer(UW(1 + NUM_AUX))))
    NOT_PERMUTABLE[repr(arml.TorchJDScalarizer(Random()))] = "it draws a weight for each position"
    NOT_PERMUTABLE[repr(arml.TorchJD(PCGradWeighting()))] = "it draws an order of the tasks at random"


def signals_from(jacobian: torch.Tensor, losses: torch.Tensor, method: Method, state) -> Signals:
    """What a step with these gradients [1 + K, P] and losses [1 + K] shows ``method``."""
    directions = method.directions(state)
    gram = jacobian @ jacobian.T
    return Signals(
        losses,
        None if directions is None else directions.to(gram) @ gram,
        gram if method.needs().gram else None,
        jacobian.norm(dim=1) if method.needs().norms else None,
    )


def random_step(seed: int, num_aux: int = NUM_AUX, dtype=torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients and positive losses of a step."""
    generator = torch.Generator().manual_seed(seed)
    jacobian = torch.randn(1 + num_aux, 6, generator=generator, dtype=dtype)
    losses = torch.rand(1 + num_aux, generator=generator, dtype=dtype) + 0.1
    return jacobian, losses


def run(method: Method, seeds, dtype=torch.float64, num_aux: int = NUM_AUX, order=None):
    """Weights after each of the steps ``seeds``, with tasks in the given ``order``; and the last memory."""
    state = method.init(torch.zeros(1 + num_aux, dtype=dtype))
    history = []
    for seed in seeds:
        jacobian, losses = random_step(seed, num_aux, dtype)
        if order is not None:
            jacobian, losses = jacobian[order], losses[order]
        weights, state = method.update(state, signals_from(jacobian, losses, method, state))
        history.append(weights)
    return history, state
