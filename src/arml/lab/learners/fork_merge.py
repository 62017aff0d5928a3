"""Two branches, the main target alone and all targets, merged again and again by validation examples."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from arml._distributed import average_buffers, average_gradients, gather
from arml.lab.data.batches import AttributeBatch
from arml.lab.learners.base import AugmentExamples
from arml.lab.learners.joint_targets import JointTargets, MainTarget
from arml.lab.models.network import Network
from arml.lab.tasks.attributes import Attributes

GRID = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""The candidates for lambda."""


@dataclass(frozen=True)
class Branching:
    """What the branches need from the run that trains them."""

    make_optimizer: Callable[[Network], Optimizer]
    """The optimiser of the second branch, as that of the first."""
    set_lr: Callable[[Optimizer, int], None]
    """Sets the step size that the optimiser has at a step."""
    score: Callable[[Network], float]
    """Judges a network on validation examples of the main target: less is better."""
    merges_after: Callable[[int], bool]
    """Whether the branches are merged after this many steps."""


class ForkMerge(JointTargets):
    r"""Trains two branches from the same parameters, merges them, and begins again from the merged network.

    One branch learns the main target alone, the other all targets with equal weights. After n steps of each

    .. math::
        \theta \leftarrow \lambda\, \theta_{\text{main}} + (1 - \lambda)\, \theta_{\text{joint}}, \qquad
        \lambda = \arg\min_{\lambda \in \Lambda} \text{score}(\theta)

    with the score on validation examples of the main target and :math:`\Lambda` = 0, 0.2, ..., 1; on a tie the smaller
    :math:`\lambda` counts. Jiang et al., *ForkMerge: Mitigating Negative Transfer in Auxiliary-Task Learning*, NeurIPS
    2023, with two branches as in the first form of their algorithm. A step trains both networks, so a run takes up to
    twice as long as that of :class:`JointTargets`, and validation labels are used at every merge.

    As in the authors' release, merging covers buffers such as BatchNorm's statistics, and each branch keeps the state
    of its optimiser. Where we depart from it:

    - The release keeps the best network of each branch on validation examples and merges those. We merge the last ones.
    - The release ranks the branches and tries :math:`\theta_{\text{best}} + a\, \theta_{\text{other}}` over 1 + a for a
      in :math:`\Lambda`, so the better branch has half or more. We try all of [0, 1], as the formula has it.
    - The release draws one task per step. Here every step has all targets, as in all other learners of this setting.
    - There are no branches with a few of the auxiliary targets, and no ranking that would choose them.
    """

    takes_own_steps = True

    def __init__(self, main: Attributes, aux: Attributes, augment: AugmentExamples, branching: Branching) -> None:
        """``main``, ``aux`` and ``augment`` as in :class:`JointTargets`."""
        super().__init__(main, aux, augment)
        self.alone, self.branching = MainTarget(main, augment), branching
        self.chosen: list[float] = []
        """Every lambda so far."""

    def start(self, network: Network) -> None:
        """Makes the branch of the main target; ``network`` is the other one."""
        self._branch = deepcopy(network)
        self._optimizer = self.branching.make_optimizer(self._branch)

    def losses(
        self, network: Network, batch: AttributeBatch, step: int, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """The losses of all targets on ``network``. The other branch sees the same examples of the main target."""
        found = super().losses(network, batch, step, generator)
        self._step = step
        self._loss, _ = self.alone.losses(self._branch, batch, step, generator)
        return found

    def after_step(self, network: Network) -> None:
        """The same step of the other branch, and a merge where it is time."""
        self.branching.set_lr(self._optimizer, self._step)
        self._optimizer.zero_grad()
        self._loss.backward()
        average_gradients(self._branch.parameters())
        self._optimizer.step()
        average_buffers(self._branch)
        del self._loss  # and its graph
        if self.branching.merges_after(self._step + 1):
            self._merge(network)

    def _merge(self, network: Network) -> None:
        average_buffers(network)
        alone, joint = (deepcopy(branch.state_dict()) for branch in (self._branch, network))
        scores = {share: self._score(merge(alone, joint, share)) for share in GRID}
        best = min(scores, key=scores.__getitem__)
        self.chosen.append(best)
        for branch in (self._branch, network):
            branch.load_state_dict(merge(alone, joint, best))

    def _score(self, merged: dict[str, Tensor]) -> float:
        self._branch.load_state_dict(merged)
        self._branch.eval()
        score = self.branching.score(self._branch)
        self._branch.train()
        return float(gather(score)[0])  # devices may round differently, and all processes must choose alike

    def state_dict(self) -> dict[str, Any]:
        """The branch of the main target, its optimiser, and every lambda so far."""
        return {
            "branch": self._branch.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "chosen": list(self.chosen),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continues exactly from ``state``; call ``start`` first."""
        self._branch.load_state_dict(state["branch"])
        self._optimizer.load_state_dict(state["optimizer"])
        self.chosen = list(state["chosen"])


def merge(alone: Mapping[str, Tensor], joint: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
    """``share`` times ``alone`` plus ``1 - share`` times ``joint``; whole numbers, such as counters, are ``joint``'s.

    >>> merge({"w": torch.tensor([1.0, 0.0])}, {"w": torch.tensor([0.0, 2.0])}, 0.25)
    {'w': tensor([0.2500, 1.5000])}
    """
    return {
        name: share * alone[name] + (1 - share) * value if value.is_floating_point() else value
        for name, value in joint.items()
    }
