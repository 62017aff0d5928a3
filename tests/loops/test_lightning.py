"""Lightning's own Trainer, with the module of the example."""

import os
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
pytest.importorskip("lightning")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.*treespec, LeafSpec:"),  # of torch, in Lightning
    pytest.mark.filterwarnings("ignore:The '.*' does not have many workers"),
    pytest.mark.filterwarnings("ignore:You called `self.log_dict"),  # where there is no logger
    pytest.mark.filterwarnings("ignore:.*GPU available but not used"),
]


def load_example():
    spec = spec_from_file_location("lightning_digits", ROOT / "examples" / "lightning_digits.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def example():
    return load_example()


def fit(example, tmp_path, steps, *, manual=False, resume=None, **settings):
    """Trains the module of the example; returns it, its Trainer and the weights after every call."""
    from lightning.pytorch import Trainer, seed_everything
    from lightning.pytorch.loggers import CSVLogger
    from torch.utils.data import DataLoader, TensorDataset

    class Manual(example.Digits):
        def __init__(self, *args):
            super().__init__(*args)
            self.automatic_optimization = False

        def training_step(self, batch, batch_idx):
            optimizer = self.optimizers()
            optimizer.zero_grad()
            self.manual_backward(super().training_step(batch, batch_idx))
            optimizer.step()

    seed_everything(0, verbose=False)
    images, labels = example.load(0)
    module = (Manual if manual else example.Digits)(example.Agreement(warmup=2), (images[900:920], labels[900:920]))
    history = []
    module.reweighter.watchers.append(lambda _: history.append(module.reweighter.weights))
    callbacks = [example.ARMLCallback(module.reweighter)]
    settings = {
        "accelerator": "cpu",
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        **settings,
    }
    trainer = Trainer(max_steps=steps, callbacks=callbacks, logger=CSVLogger(tmp_path), log_every_n_steps=1, **settings)
    loader = DataLoader(TensorDataset(images[900:], labels[900:]), batch_size=64)
    trainer.fit(module, loader, ckpt_path=resume)
    return module, trainer, history


def test_manual_and_automatic_optimisation_are_the_same(example, tmp_path):
    automatic, trainer, history = fit(example, tmp_path, 5)
    manual, _, other = fit(example, tmp_path, 5, manual=True)
    assert history == other
    assert len({str(weights) for weights in history}) > 1
    assert all(torch.equal(a, b) for a, b in zip(automatic.parameters(), manual.parameters(), strict=True))
    assert trainer.logged_metrics["weight/coin"] == pytest.approx(history[-1]["coin"])


def test_training_goes_on_from_a_checkpoint(example, tmp_path):
    """After an epoch: in the middle of one, Lightning begins its batches again."""
    whole, _, history = fit(example, tmp_path, -1, max_epochs=2, limit_train_batches=3)
    _, trainer, _ = fit(example, tmp_path / "first", -1, max_epochs=1, limit_train_batches=3)
    trainer.save_checkpoint(tmp_path / "half.ckpt")
    again = {"max_epochs": 2, "limit_train_batches": 3, "resume": tmp_path / "half.ckpt"}
    resumed, _, rest = fit(example, tmp_path / "rest", -1, **again)
    assert rest == history[3:]
    assert resumed.reweighter.steps == 6
    assert torch.equal(resumed.reweighter.get_extra_state(), whole.reweighter.get_extra_state())


def test_bfloat16_and_accumulation(example, tmp_path):
    module, trainer, history = fit(example, tmp_path, 3, precision="bf16-mixed", accumulate_grad_batches=2)
    assert trainer.global_step == 3
    assert module.reweighter.steps == 6
    assert len({str(weights) for weights in history}) > 1


WORKER = """
import sys, warnings
sys.path.insert(0, {tests!r})
from pathlib import Path
from loops.test_lightning import fit, load_example
if __name__ == "__main__":
    settings = {{"strategy": "ddp_find_unused_parameters_true", "devices": 2}}
    module, trainer, history = fit(load_example(), Path({out!r}), 4, **settings)
    Path({out!r}, f"rank{{trainer.global_rank}}.txt").write_text(repr(history))
"""


@pytest.mark.long
def test_two_processes_hold_the_same_weights(tmp_path):
    script = tmp_path / "worker.py"
    script.write_text(WORKER.format(tests=str(ROOT / "tests"), out=str(tmp_path)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    ran = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=400)
    assert ran.returncode == 0, ran.stderr[-3000:]
    one, other = ((tmp_path / f"rank{rank}.txt").read_text() for rank in (0, 1))
    assert one == other
    assert len(set(map(str, eval(one)))) > 1


@pytest.mark.long
def test_the_example_runs_in_bfloat16(tmp_path):
    command = [
        sys.executable,
        "examples/lightning_digits.py",
        "--seeds",
        "1",
        "--steps",
        "30",
        "--precision",
        "bf16-mixed",
    ]
    ran = subprocess.run([*command, "--out", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert ran.stdout.count("error") == 3
    assert len(list(tmp_path.glob("*/done"))) == 3


def test_a_version_that_is_too_old_is_refused(monkeypatch):
    import lightning

    from arml.loggers import require

    monkeypatch.setattr(lightning, "__version__", "1.9.5")
    with pytest.raises(ImportError, match=r"needs lightning>=2.2. Found 1.9.5. Update it with"):
        require("lightning", "arml.integrations.lightning", "2.2")
