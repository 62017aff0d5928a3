"""A full disk and exhausted memory: our sentence, and a run that can go on."""

import errno
import os
import resource
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from lab.parts import make
from torch import nn

from arml.lab.run_kinds import MultiLabel
from arml.lab.shortage import ShortageError, checkpoint_size, explain_shortages
from arml.lab.train import train

HERE = Path("runs/a")


def explain(error, **given):
    with pytest.raises(ShortageError) as caught, explain_shortages(HERE, **given):
        raise error
    return str(caught.value)


def test_a_full_disk_is_named_with_what_is_needed():
    text = explain(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), needed=12_000_000)
    assert text.startswith(f"The disk of {HERE} is full: ")
    assert "A checkpoint of this run takes about 12.0 MB" in text
    assert "--out" in text
    assert "--resume" in text


def test_what_torch_says_of_a_full_disk_is_understood():
    assert "The disk of" in explain(RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 4352"))
    assert "Your share of the disk" in explain(OSError(errno.EDQUOT, ""))


def test_memory_that_runs_out_is_named_with_what_was_asked_for():
    with (
        pytest.raises(
            ShortageError, match=r"not enough memory: it ran out when 1\.0 EB|when \d+\.\d TB more were needed"
        ),
        explain_shortages(HERE),
    ):
        torch.empty(2**50)
    needed = r"ran out when [\d.]+ PiB more were needed.*smaller batches"
    with pytest.raises(ShortageError, match=needed), explain_shortages(HERE):
        np.empty(2**50)
    assert "not enough memory" in explain(MemoryError())


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOENT, "no such file"), RuntimeError("shapes differ"), ValueError("a")]
)
def test_other_errors_pass(error):
    with pytest.raises(type(error)) as caught, explain_shortages(HERE):
        raise error
    assert caught.value is error


def test_the_size_of_a_checkpoint_by_hand():
    assert checkpoint_size(nn.Linear(10, 5)) == 4 * 4 * (50 + 5)


@contextmanager
def files_of_at_most(size):
    """As on a full disk: no file may grow beyond ``size`` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_run_on_a_full_disk_says_so_and_goes_on_when_there_is_room(tmp_path):
    run = MultiLabel(network="mlp-32", steps=6, evaluate_every=3, record_every=2, checkpoint_every=2)
    parts = make(run, tmp_path)
    with pytest.raises(ShortageError, match=r"may not be larger than .*--out"), files_of_at_most(20_000):
        train(run, parts, tmp_path / "full", resume=True)
    train(run, make(run, tmp_path), tmp_path / "full", resume=True)
    train(run, make(run, tmp_path), tmp_path / "free")
    records = [(tmp_path / name / "record.jsonl").read_bytes() for name in ("full", "free")]
    assert records[0] == records[1]
