import pytest
import torch


@pytest.fixture(autouse=True)
def _seed_and_one_thread():
    torch.manual_seed(0)
    torch.set_num_threads(1)
