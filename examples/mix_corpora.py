"""Fine-tune a small language model on a target corpus; a bandit learns which other corpora to draw from.

The target are pages on Python's syntax; sources are code, docstrings, descriptions of data sets, and noise.

Run it with: python examples/mix_corpora.py      (and again with --resume, from the last checkpoint)
Needs: pip install 'arml[lab]' 'transformers[torch]' peft
"""

import argparse
import importlib
import inspect
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import sklearn
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

from arml import EXP3, Recorder, Reweighter, SourceSampler
from arml.integrations.transformers import ARMLCallback

LENGTH = 64  # characters per row


def corpora() -> dict[str, str]:
    modules = [importlib.import_module(name) for name in ("argparse", "decimal", "logging", "tarfile")]
    members = [item for module in modules for _, item in inspect.getmembers(module)]
    described = sorted((Path(sklearn.__file__).parent / "datasets" / "descr").glob("*.rst"))
    return {
        "target": "\n".join(topics[name] for name in sorted(topics))[:60_000],
        "code": "\n".join(map(inspect.getsource, modules))[:60_000],
        "docstrings": "\n".join(item.__doc__ or "" for item in members)[:60_000],
        "descriptions": "\n".join(path.read_text() for path in described)[:60_000],
        "noise": bytes(torch.randint(32, 127, (60_000,)).tolist()).decode(),
    }


class Mixed(Trainer):
    def get_train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(self.train_dataset, batch_sampler=sampler, generator=torch.Generator())

    def compute_loss(self, model: nn.Module, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        name = sampler.names[int(inputs["source"][-1])]
        main, aux = (model(input_ids=rows, labels=rows).loss for rows in inputs["input_ids"].chunk(2))
        return reweighter(main, {name: aux}, counts=sampler.counts(name))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", default="runs/mix_corpora")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    set_seed(0)
    rows: list[dict[str, Any]] = []
    homes: dict[str, range] = {}
    for number, (name, text) in enumerate(corpora().items()):
        parts = torch.tensor([min(ord(c), 127) for c in text]).split(LENGTH)[:-1]
        homes[name] = range(len(rows), len(rows) + len(parts))
        rows += [{"input_ids": part, "source": number - 1} for part in parts]
    target, tested = homes["target"][:64], torch.stack([rows[i]["input_ids"] for i in homes.pop("target")[-200:]])
    tokens = {"vocab_size": 128, "bos_token_id": 0, "eos_token_id": 0}
    base = GPT2LMHeadModel(GPT2Config(n_positions=LENGTH, n_embd=64, n_layer=2, n_head=2, **tokens))
    lora = LoraConfig(r=8, target_modules=["c_attn", "c_fc"], fan_in_fan_out=True, modules_to_save=["wte", "ln_f"])
    model = get_peft_model(base, lora)  # `shared` takes its trainable parameters: frozen ones are left out
    reweighter = Reweighter(EXP3(), tasks=list(homes), shared=model, aux_scale=1 / len(homes))
    sampler = SourceSampler(homes, 8, reweighter, main=target, num_batches=options.steps)
    recorder = Recorder(options.out, reweighter, main="syntax pages", every=10)
    settings = {"save_steps": options.steps // 2, "report_to": "none", "remove_unused_columns": False}
    arguments = TrainingArguments(f"{options.out}/trainer", max_steps=options.steps, learning_rate=1e-2, **settings)
    trainer = ARMLCallback(reweighter, recorder, sampler).attach(Mixed(model, arguments, train_dataset=rows))
    trainer.train(resume_from_checkpoint=options.resume)
    guesses = model.eval()(input_ids=tested.to(model.device)).logits[:, :-1].argmax(-1).cpu()
    recorder.finish({"error": 100 * (guesses != tested[:, 1:]).float().mean().item()})
    print(f"next characters wrong: {guesses.ne(tested[:, 1:]).float().mean():.1%}; {sampler.probabilities()}")
