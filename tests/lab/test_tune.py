"""The search: the same effort for every line, validation alone decides, and the same call does the same."""

import json
import math
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from cli.typed import arml

from arml.lab.run_kinds import Domains, MultiLabel, SemiSupervised
from arml.lab.sweep import Outcome
from arml.lab.tune import Space, Trial, choose_best, group_lines, search, uses
from arml.lab.tuned import Tuned, TunedLine, apply_tuned, read_tuned, write_tuned

pytest.importorskip("optuna")
ARML, UNIFORM = SemiSupervised(method="arml"), SemiSupervised(method="uniform")
RANGES = {"lr": (1e-4, 1e-1), "weight_lr": (1e-3, 1.0), "aux_scale": (0.1, 10.0)}
SPACE = Space(RANGES)


class MadeRuns:
    """Writes records in place of training. Validation is best at lr = 0.01; test errors say the opposite."""

    def __init__(self, folder: Path, failing: float = math.inf) -> None:
        self.folder, self.failing, self.trained = folder, failing, []

    def __call__(self, runs):
        self.trained += runs
        return [self._train(run) for run in runs]

    def _train(self, run):
        folder = self.folder / run.name()
        folder.mkdir(parents=True, exist_ok=True)
        score = abs(math.log10(run.lr) + 2) + run.seed
        lines = [{"setting": run.setting, "run": asdict(run), "environment": {}}]
        lines += [{"step": 1, "validation_error": score, "test_error": -score, "weights": {}}]
        (folder / "record.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return Outcome(run, folder, "it broke" if run.lr > self.failing else None)


def test_every_line_gets_the_same_effort_and_the_first_trial_is_the_line_itself(tmp_path):
    lines, train_all = [[replace(run, seed=seed) for seed in range(2)] for run in (ARML, UNIFORM)], MadeRuns(tmp_path)
    trials = search(lines, SPACE, 5, train_all)
    assert [len(tried) for tried in trials] == [5, 5]
    assert len(train_all.trained) == 2 * 5 * 2
    assert trials[0][0].values == {}
    assert trials[0][0].score == pytest.approx(abs(math.log10(0.003) + 2) + 0.5)
    assert set(trials[0][1].values) == {"lr", "weight_lr", "aux_scale"}
    assert set(trials[1][1].values) == {"lr", "aux_scale"}, "equal weights have no step"
    for tried in trials:
        assert all(RANGES[name][0] <= value <= RANGES[name][1] for t in tried for name, value in t.values.items())


def test_the_same_call_proposes_the_same(tmp_path):
    first = search([[ARML], [UNIFORM]], SPACE, 4, MadeRuns(tmp_path / "a"))
    assert search([[ARML], [UNIFORM]], SPACE, 4, MadeRuns(tmp_path / "b")) == first
    assert first[0][1].values["lr"] != first[1][1].values["lr"], "lines are searched on their own"


def test_validation_alone_decides(tmp_path):
    (trials,) = search([[ARML]], SPACE, 6, MadeRuns(tmp_path))
    (best,) = choose_best([ARML], trials)
    distances = {abs(math.log10(trial.values.get("lr", 0.003)) + 2) for trial in trials}
    assert abs(math.log10(best.values.get("lr", 0.003)) + 2) == min(distances)
    assert (best.learner, best.method, best.trials) == ("s4l", "arml", 6)


def test_failing_settings_are_not_chosen(tmp_path):
    (trials,) = search([[ARML]], Space({"lr": (1e-4, 1e-1)}), 6, MadeRuns(tmp_path, failing=0.008))
    assert any(math.isinf(trial.score) for trial in trials)
    (best,) = choose_best([ARML], trials)
    assert best.values.get("lr", ARML.lr) <= 0.008
    assert choose_best([ARML], [Trial({}, math.inf)]) == []


def test_fields_that_make_no_difference_are_not_searched():
    supervised = SemiSupervised(learner="supervised", method="uniform")
    assert [name for name in RANGES if uses(supervised, name)] == ["lr"]
    assert [name for name in RANGES if uses(Domains(method="gradnorm"), name)] == ["lr", "aux_scale"]
    assert uses(MultiLabel(method="gated_arml"), "weight_lr")


def test_lines_can_share_one_setting_which_their_mean_decides(tmp_path):
    supervised = SemiSupervised(learner="supervised", method="uniform")
    runs, train_all = [ARML, UNIFORM, supervised], MadeRuns(tmp_path)
    space = Space({"lr": (1e-4, 1e-1), "weight_lr": (1e-3, 1.0)}, {"network": ("small-8", "small-16"), "steps": (3, 5)})
    (trials,) = search([runs], space, 5, train_all)
    assert len(train_all.trained) == 5 * 3
    for trial, number in zip(trials[1:], range(3, 15, 3), strict=True):
        arml, uniform, alone = train_all.trained[number : number + 3]
        assert trial.values["network"] in ("small-8", "small-16")
        assert (arml.network, arml.steps, arml.lr) == tuple(trial.values[name] for name in ("network", "steps", "lr"))
        assert (arml.network, arml.steps, arml.lr) == (uniform.network, uniform.steps, uniform.lr)
        assert (arml.weight_lr, uniform.weight_lr, alone.weight_lr) == (trial.values["weight_lr"], None, None)
    chosen = choose_best(runs, trials)
    best = min(trials, key=lambda trial: trial.score).values
    assert [(line.learner, line.method) for line in chosen] == [("s4l", "arml"), ("s4l", "uniform"), ("supervised", "")]
    assert [line.values.get("lr") for line in chosen] == [best.get("lr")] * 3
    assert "weight_lr" not in chosen[2].values


def test_points_of_a_grid_are_no_lines_of_the_search():
    runs = [replace(run, seed=seed) for seed in range(2) for run in (ARML, UNIFORM, replace(ARML, method="grid-0.5"))]
    assert [[run.seed for run in line] for line in group_lines(runs)] == [[0, 1], [0, 1]]


def test_the_file_is_read_back_and_applied_line_by_line(tmp_path):
    chosen = TunedLine("s4l", "arml", {"network": "small-8", "steps": 7, "lr": 0.01, "weight_lr": 0.5}, 12.5, 8)
    tuned = Tuned("ssl", "digits", 2, (chosen,))
    write_tuned(tmp_path / "new" / "settings.toml", tuned, 'arml tune ssl --out "a b"', ["s4l arml:", "  12.50"])
    assert read_tuned(tmp_path / "new" / "settings.toml") == tuned
    changed = apply_tuned([ARML, UNIFORM, replace(ARML, seed=1)], tuned)
    expected = replace(ARML, network="small-8", steps=7, lr=0.01, weight_lr=0.5)
    assert changed == [expected, UNIFORM, replace(expected, seed=1)]
    with pytest.raises(ValueError, match="chosen for ssl; these runs are of mlc"):
        apply_tuned([MultiLabel()], tuned)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "KeyError"),
        ("format = 9", "its format is 9"),
        ("format = 1\nsetting = 'ssl'\ndataset = ''\nseeds = 1\nlines = 3", "TypeError"),
        ("not toml", "is no file of settings"),
        (
            "format = 1\n[[lines]]\nlearner = 's4l'\nmethod = 'arml'\nlrr = 1",
            "unknown settings lrr; known: network, steps, lr",
        ),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path, text, said):
    (tmp_path / "wrong.toml").write_text(text)
    with pytest.raises(ValueError, match=said):
        read_tuned(tmp_path / "wrong.toml")


def test_ranges_and_the_missing_package_are_named(tmp_path, monkeypatch):
    wrong = arml("tune", "mlc", "--lr-range", "0.1", "0.01", "--out", str(tmp_path))
    assert wrong.returncode == 1
    assert "--lr-range takes two positive numbers, the least first. Got 0.1 0.01." in wrong.stderr
    monkeypatch.setitem(sys.modules, "optuna", None)
    missing = arml("tune", "mlc", "--out", str(tmp_path))
    assert "pip install 'arml[tune]'" in missing.stderr


@pytest.mark.long
def test_a_search_from_the_command_line_feeds_a_comparison(tmp_path):
    small = ["--network", "mlp-8", "--steps", "4", "--batch-main", "8", "--batch-aux", "8", "--evaluate-every", "2"]
    small += ["--methods", "uniform", "--no-main-only", "--workers", "1"]
    settings = tmp_path / "settings.toml"
    options = ["--seeds", "1", "--trials", "2", "--settings", str(settings), "--out", str(tmp_path / "runs")]
    found = arml("tune", "mlc", *small, *options)
    assert found.returncode == 0, found.stderr
    assert "joint uniform:\n  " in found.stdout
    before = settings.read_text()
    again = arml("tune", "mlc", *small, *options)
    assert again.returncode == 0
    assert settings.read_text() == before, "nothing is trained again, and the choice is the same"
    (line,) = read_tuned(settings).lines
    compared = arml("compare", "mlc", *small, "--seeds", "1", "--settings", str(settings), *options[-2:])
    assert compared.returncode == 0, compared.stderr
    assert len(list((tmp_path / "runs").glob("*/record.jsonl"))) == 2, "its run is one of the trials: none is trained"
    assert line.trials == 2
