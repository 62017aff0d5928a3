"""Yeast as it ships inside river."""

import pytest
import torch
from torch.testing import assert_close

from arml.lab.data import yeast


@pytest.fixture(scope="module")
def examples():
    return yeast.load()


def test_all_genes_and_functions_are_there(examples):
    assert examples.name == "yeast"
    assert examples.rows is None
    assert list(examples.targets) == [f"Class{i}" for i in range(1, 15)]
    for target in examples.targets.values():
        assert target.classes == ("no", "yes")
        assert target.values.dtype == torch.float32
        assert set(target.values.tolist()) == {0.0, 1.0}
    # The first gene, as it is in the file.
    assert [i for i in range(1, 15) if examples.targets[f"Class{i}"].values[0]] == [7, 8, 12, 13]
    # 4.237 labels a gene is what papers on this data set report.
    assert round(float(torch.stack([target.values for target in examples.targets.values()]).sum(0).mean()), 3) == 4.237


def test_features_are_standardised_on_the_training_rows_alone(examples):
    train = torch.arange(0, 2417, 3)
    x = examples.inputs(train)
    assert x.shape == (2417, 103)
    assert x.dtype == torch.float32
    assert_close(x[train].mean(0), torch.zeros(103), atol=1e-5, rtol=0)
    assert_close(x[train].std(0, correction=0), torch.ones(103), atol=1e-5, rtol=0)
    assert float(x.mean(0).abs().max()) > 1e-3, "all rows were looked at"


def test_what_one_training_row_says_about_scales_is_nothing(examples):
    assert not bool(examples.inputs(torch.tensor([5])).any())


def test_rows_of_inputs_and_targets_belong_together(examples):
    from river.datasets import Yeast

    measured, functions = zip(*Yeast(), strict=True)
    raw = torch.tensor([gene["Att5"] for gene in measured])
    x = examples.inputs(torch.arange(2417))[:, 4]
    assert float(torch.corrcoef(torch.stack([raw, x]))[0, 1]) > 0.9999
    assert examples.targets["Class3"].values.tolist() == [float(gene["Class3"]) for gene in functions]
