"""Hugging Face's own Trainer."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from arml import EXP3, Agreement, Recorder, Reweighter, SourceSampler

ROOT = Path(__file__).parents[2]
pytest.importorskip("transformers")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true")]
SOURCES = {"good": range(64), "bad": range(64, 128), "noise": range(128, 192)}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(4, 3)
        self.heads = nn.ModuleDict({name: nn.Linear(3, 1) for name in ("main", *SOURCES)})

    def forward(self, x, y=None):
        features = self.trunk(x)
        return {name: (head(features)[:, 0] - y).square().mean() for name, head in self.heads.items()}


def train(folder, steps, *, resume=False, micro_batches=1, samples=False):
    """Trains with all tasks at every step, or with one source; returns the Trainer and the weights after every call."""
    from transformers import Trainer, TrainingArguments, set_seed

    from arml.integrations.transformers import ARMLCallback

    set_seed(0)
    net, history = Net(), []
    x, target = torch.randn(192, 4), torch.randn(4)
    y = torch.cat([x[:64] @ target, -x[64:128] @ target, torch.randn(64)])
    method = EXP3() if samples else Agreement(warmup=2)
    reweighter = Reweighter(method, list(SOURCES), net.trunk, every=1, convergence=None)
    sampler = SourceSampler(SOURCES, 4, reweighter, main=range(64), num_batches=steps) if samples else None
    recorder = Recorder(folder / "record", reweighter, every=1, loggers=())

    class Several(Trainer):
        def get_train_dataloader(self):
            if sampler is None:
                return super().get_train_dataloader()
            return torch.utils.data.DataLoader(self.train_dataset, batch_sampler=sampler)

        def compute_loss(self, model, inputs, return_outputs=False, **_):
            if sampler is None:
                losses = model(**inputs)
                loss = reweighter(losses.pop("main"), losses)
            else:
                name = sampler.source
                main, aux = (model(*(part.chunk(2)[i] for part in inputs.values())) for i in (0, 1))
                loss = reweighter(main["main"], {name: aux[name]}, counts=sampler.counts(name))
            history.append((reweighter.weights, sampler and sampler.source, loss.item()))
            return loss

    arguments = TrainingArguments(
        str(folder / "trainer"), max_steps=steps, per_device_train_batch_size=4, disable_tqdm=True,
        save_steps=4, logging_steps=2, report_to="none", use_cpu=True, learning_rate=0.01, lr_scheduler_type="constant",
        gradient_accumulation_steps=micro_batches,
    )  # fmt: skip
    rows = [{"x": a, "y": b} for a, b in zip(x, y, strict=True)]
    trainer = Several(net, arguments, train_dataset=rows)
    ARMLCallback(reweighter, recorder, sampler).attach(trainer)
    trainer.train(resume_from_checkpoint=resume)
    recorder.close()
    return trainer, history, recorder


@pytest.mark.parametrize("samples", [False, True], ids=["all tasks", "one source"])
def test_weights_sources_and_record_resume_with_the_checkpoint(tmp_path, samples):
    whole, history, record = train(tmp_path / "whole", 8, samples=samples)
    train(tmp_path / "half", 4, samples=samples)
    resumed, rest, other = train(tmp_path / "half", 8, samples=samples, resume=True)
    assert rest == history[4:]
    assert len({str(weights) for weights, *_ in history}) > 1
    for a, b in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert record.path.read_bytes() == other.path.read_bytes()


def test_weights_are_logged_for_every_reporter(tmp_path):
    trainer, history, _ = train(tmp_path, 4)
    assert trainer.state.log_history[1]["weight/good"] == history[-1][0]["good"]


def test_the_joint_loss_is_divided_by_the_number_of_micro_batches(tmp_path):
    trainer, history, _ = train(tmp_path, 2, micro_batches=2)
    assert len(history) == 4
    mean = sum(loss for *_, loss in history) / 4
    assert trainer.state.log_history[0]["loss"] == pytest.approx(mean, rel=1e-3)


def run(script, out, *options):
    command = [sys.executable, f"examples/{script}.py", "--out", str(out), *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout


@pytest.mark.long
@pytest.mark.parametrize("script", ["trainer_docstrings", "mix_corpora"])
def test_examples_run_and_resume(tmp_path, script):
    pytest.importorskip("peft")
    run(script, tmp_path, "--steps", "4")
    (record,) = tmp_path.glob("*/record.jsonl")
    before = record.read_bytes()
    (tmp_path / "trainer" / "checkpoint-4").rename(tmp_path / "later")
    run(script, tmp_path, "--steps", "4", "--resume")
    lines = [json.loads(line) for line in record.read_text().splitlines()]
    assert lines[-1]["test_error"] == json.loads(before.splitlines()[-1])["test_error"]
