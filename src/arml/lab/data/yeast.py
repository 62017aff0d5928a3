"""Yeast: 2 417 genes with 103 measurements and 14 yes-or-no functions each (Elisseeff and Weston, 2001).

It ships inside river (BSD licence), which took it from the MULAN collection of multi-label data sets.
"""

import torch

from arml.lab.data.table_features import standardise
from arml.lab.data.targets import Examples, Target


def load() -> Examples:
    """All genes; the targets are ``Class1`` to ``Class14``. The data set has no split of its own: the seed draws one.

    >>> yeast = load()
    >>> yeast.inputs(torch.arange(2000)).shape, int(yeast.targets["Class14"].values.sum())
    (torch.Size([2417, 103]), 34)
    """
    from river.datasets import Yeast  # here, so that other data sets do not need river

    measured, functions = zip(*Yeast(), strict=True)  # type: ignore[no-untyped-call, unused-ignore]
    features = torch.tensor([list(gene.values()) for gene in measured], dtype=torch.float64)
    targets = {
        name: Target(torch.tensor([float(gene[name]) for gene in functions]), classes=("no", "yes"))
        for name in functions[0]
    }
    return Examples(
        "yeast", targets, lambda train: torch.from_numpy(standardise(features.numpy(), train.numpy())).float()
    )
