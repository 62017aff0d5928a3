"""A small transformer learns from few labels which module a docstring is from, with Hugging Face's Trainer.

All docstrings have two auxiliary labels: whether they document a class, and whether they mention what is returned.

Run it with: python examples/trainer_docstrings.py      (and again with --resume, from the last checkpoint)
Needs: pip install 'arml[lab]' 'transformers[torch]'
"""

import argparse
import importlib
import inspect
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertModel, Trainer, TrainingArguments, set_seed

from arml import Recorder, Reweighter
from arml.integrations.transformers import ARMLCallback

MODULES = ("argparse", "asyncio", "decimal", "email.message", "logging", "pathlib", "statistics", "tarfile")
TASKS, LENGTH, UNKNOWN = ["is_class", "mentions_return"], 128, -100


def load(num_labels: int) -> list[dict[str, Tensor]]:
    found: dict[str, tuple[int, bool]] = {}
    rows = []
    for number, name in enumerate(MODULES):
        members = [item for _, item in inspect.getmembers(importlib.import_module(name))]
        members += [item for one in members if inspect.isclass(one) for item in vars(one).values() if callable(item)]
        found |= {one.__doc__: (number, inspect.isclass(one)) for one in members if len(one.__doc__ or "") > 40}
    for place, i in enumerate(torch.randperm(len(found)).tolist()):
        text, (module, is_class) = sorted(found.items())[i]
        labels = [module if place < num_labels else UNKNOWN, int(is_class), int("return" in text.lower()), module]
        codes = (text.encode("ascii", "replace") + bytes(LENGTH))[:LENGTH]
        rows.append({"input_ids": torch.tensor(list(codes)), "labels": torch.tensor(labels)})
    return rows


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
        self.trunk = BertModel(BertConfig(vocab_size=128, max_position_embeddings=LENGTH, **size))
        self.heads = nn.ModuleDict({"main": nn.Linear(32, len(MODULES)), **{task: nn.Linear(32, 2) for task in TASKS}})
        self.reweighter = Reweighter(tasks=TASKS, shared=self.trunk)

    def forward(self, input_ids: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        features = self.trunk(input_ids, attention_mask=(input_ids > 0).long()).pooler_output
        return {name: head(features) for name, head in self.heads.items()}


class SeveralLosses(Trainer):
    def compute_loss(self, model: nn.Module, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        answers, known = model(**inputs), inputs["labels"][:, 0] != UNKNOWN
        main = cross_entropy(answers["main"][known], inputs["labels"][known, 0]) if known.any() else None
        aux = {task: cross_entropy(answers[task], inputs["labels"][:, 1 + i]) for i, task in enumerate(TASKS)}
        return self.model.reweighter(main, aux)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", default="runs/trainer_docstrings")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    set_seed(0)
    rows, model = load(num_labels=120), Reader()
    recorder = Recorder(options.out, model.reweighter, main="module", settings={"labels": 120}, every=10)
    settings = {"gradient_accumulation_steps": 2, "save_steps": options.steps // 2, "report_to": "none"}
    arguments = TrainingArguments(f"{options.out}/trainer", max_steps=options.steps, learning_rate=3e-3, **settings)
    trainer = SeveralLosses(model, arguments, train_dataset=rows[:-200])
    ARMLCallback(model.reweighter, recorder).attach(trainer)
    trainer.train(resume_from_checkpoint=options.resume)
    tested = {name: torch.stack([row[name] for row in rows[-200:]]).to(model.trunk.device) for name in rows[0]}
    wrong = model.eval()(**tested)["main"].argmax(1) != tested["labels"][:, 3]
    recorder.finish({"error": 100 * wrong.float().mean().item()})
    print(f"error {100 * wrong.float().mean():.1f} %, weights {model.reweighter.weights}")
