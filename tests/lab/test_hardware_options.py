"""Precision, compilation and device of a run: its name has what changes numbers, its record the rest."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.amp import GradScaler

from arml.lab.build import Folders, build
from arml.lab.checkpoint import read_checkpoint, write_checkpoint
from arml.lab.run import Run
from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
from arml.lab.trace import read
from arml.lab.train import Parts, TrainingState, descend, losses_of, train

OFTEN = {"steps": 6, "evaluate_every": 3, "record_every": 2, "checkpoint_every": 3, "every": 2}
TINY = SemiSupervised(batch_labelled=8, batch_unlabelled=8, network="plain-8", method="arml", **OFTEN)
TABLE = MultiLabel(network="mlp-8", batch_main=8, batch_aux=8, **OFTEN)


def make(run: Run, folder: Path) -> Parts[Any]:
    return build(run, Folders(folder, folder))


def step_often(parts: Parts[Any], steps: int = 4) -> list[list[float]]:
    """The weights after every step."""
    parts.network.train()
    weights = []
    for step in range(steps):
        descend(parts, losses_of(parts, step))
        assert parts.reweighter is not None
        weights.append(list(parts.reweighter.weights.values()))
    return weights


def test_old_names_stay_and_precision_makes_another_run() -> None:
    assert SemiSupervised().name() == "digits-50-s4l-arml-0-65736e1fed"
    names = {TINY.name(), replace(TINY, precision="bf16").name(), replace(TINY, compile=True).name()}
    assert len(names) == 3
    assert "precision" not in TINY.described()


def test_the_record_names_device_precision_and_build(tmp_path: Path) -> None:
    run = replace(TINY, precision="bf16")
    train(run, make(run, tmp_path), tmp_path / "run")
    recorded = read(tmp_path / "run" / "record.jsonl")
    assert recorded.run == run
    hardware = {name: recorded.environment[name] for name in ("device", "precision", "processes", "torch")}
    assert hardware == {"device": "cpu", "precision": "bf16", "processes": "1", "torch": torch.__version__}


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_low_precision_computes_passes_and_keeps_parameters(tmp_path: Path, precision: str) -> None:
    parts, seen = make(replace(TINY, precision=precision), tmp_path), []
    parts.network.trunk.register_forward_hook(lambda _module, _inputs, output: seen.append(output.dtype))
    weights = step_often(parts)
    assert set(seen) == {torch.bfloat16 if precision == "bf16" else torch.float16}
    assert {p.dtype for p in parts.network.parameters()} == {torch.float32}
    assert all(bool(p.isfinite().all()) for p in parts.network.parameters())
    exact = step_often(make(TINY, tmp_path))
    assert weights[0] != [1.0, 1.0]
    torch.testing.assert_close(torch.tensor(weights), torch.tensor(exact), rtol=0, atol=0.15)


@pytest.mark.parametrize("method", ["arml", "gradnorm"])
def test_weights_do_not_depend_on_the_loss_scale(tmp_path: Path, method: str) -> None:
    """A power of two changes no digit of a gradient in float16, unless it vanishes or overflows."""
    found = []
    for scale in (2.0**8, 2.0**12):
        parts = make(replace(TINY, precision="fp16", method=method), tmp_path)
        parts.scaler = GradScaler("cpu", init_scale=scale)
        assert parts.reweighter is not None
        parts.reweighter.loss_scale = parts.scaler
        found.append(step_often(parts))
    assert found[0][-1] != [1.0, 1.0]
    torch.testing.assert_close(torch.tensor(found[0]), torch.tensor(found[1]), rtol=0, atol=2e-3)


def test_float16_resumes_exactly(tmp_path: Path) -> None:
    run = replace(TINY, precision="fp16")
    train(run, make(run, tmp_path), tmp_path / "whole")
    train(replace(run, steps=3), make(run, tmp_path), tmp_path / "parts")
    first, *_ = (tmp_path / "whole" / "record.jsonl").read_text().splitlines()
    half = replace(run, steps=3)
    saved = read_checkpoint(tmp_path / "parts", half.name())
    assert saved is not None
    assert saved.state["scaler"]["scale"] == 65536.0
    assert saved.state["device"] == "cpu"
    assert TrainingState.load(tmp_path / "parts", half, make(run, tmp_path)).step == 3
    assert json.loads(first)["run"]["precision"] == "fp16"


def test_a_second_network_is_refused_in_float16(tmp_path: Path) -> None:
    run = replace(TABLE, learner="forkmerge", method="uniform", precision="fp16")
    with pytest.raises(ValueError, match=r"forkmerge trains a second network.*--precision bf16 or fp32"):
        make(run, tmp_path)


def test_a_checkpoint_of_another_device_is_refused(tmp_path: Path) -> None:
    train(TINY, make(TINY, tmp_path), tmp_path / "run")
    saved = read_checkpoint(tmp_path / "run", TINY.name())
    assert saved is not None
    write_checkpoint(tmp_path / "run", saved._replace(state={**saved.state, "device": "cuda"}))
    with pytest.raises(ValueError, match=r"was written on cuda, and this is cpu.*Resume with --device cuda"):
        TrainingState.load(tmp_path / "run", TINY, make(TINY, tmp_path))


def test_a_trunk_that_cannot_be_compiled_trains_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Any) -> None:
        def call(*_: Any) -> None:
            raise OSError("no compiler")

        self._compiled_call_impl = call

    monkeypatch.setattr(torch.nn.Module, "compile", fail)
    with pytest.warns(UserWarning, match="--compile does not work here, and training goes on without it: OSError: no"):
        parts = make(replace(TINY, compile=True), tmp_path)
    assert step_often(parts) == step_often(make(TINY, tmp_path))


def test_a_learner_that_looks_at_layers_is_not_compiled(tmp_path: Path) -> None:
    run = Domains(learner="baseline", method="arml", batch_source=4, batch_target=4, compile=True, **OFTEN)
    with pytest.warns(UserWarning, match="baseline looks at single layers of the trunk"):
        make(run, tmp_path)


@pytest.mark.slow
def test_a_compiled_trunk_learns_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the graph that torch captures, and without the C++ that it would make from it."""
    monkeypatch.setattr(
        torch.nn.Module, "compile", lambda self: setattr(self, "_compiled_call_impl", compiled(self._call_impl))
    )
    run = replace(TINY, network="small-8", steps=4)
    expected, plain = make(run, tmp_path), make(replace(run, compile=True), tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert plain.network.trunk._compiled_call_impl is not None
        found, same = step_often(plain), step_often(expected)
    torch.testing.assert_close(torch.tensor(found), torch.tensor(same), rtol=0, atol=1e-4)
    for name, value in expected.network.state_dict().items():
        torch.testing.assert_close(plain.network.state_dict()[name], value, rtol=1e-3, atol=1e-4, msg=name)


def compiled(call: Any) -> Any:
    return torch.compile(call, backend="eager")
