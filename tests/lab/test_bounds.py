"""Numbers beyond all measure are refused at once, wherever they are given."""

import pytest
from cli.typed import arml

from arml.lab.run import fit_file_name
from arml.lab.run_kinds import SemiSupervised

HUGE = "1000000000000"
OPTIONS = [
    *[("train", "ssl", option) for option in ("--batch-labelled", "--batch-unlabelled", "--supervised-batch")],
    *[("train", "mlc", option) for option in ("--batch-main", "--batch-aux", "--image-size", "--steps", "--every")],
    *[("train", "dg", f"--{name}-every") for name in ("evaluate", "record", "checkpoint")],
    *[("train", "ssl", option) for option in ("--window", "--threads")],
    *[("train", "dg", option) for option in ("--lr", "--weight-lr", "--momentum", "--lr-drop", "--weight-decay")],
    *[("train", "mlc", option) for option in ("--temperature", "--aux-scale", "--bn-momentum")],
    *[("compare", "ssl", option) for option in ("--seeds", "--workers")],
    *[("suite", option) for option in ("--seeds", "--workers", "--steps")],
    *[("demo", option) for option in ("--seeds", "--workers")],
    ("bench", "--repeats"),
    ("report", "runs", "--figures"),
]


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_a_count_without_measure_is_refused(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    answer = arml(*words, HUGE)
    assert answer.returncode == 1
    assert "most" in answer.stderr or " to 10000" in answer.stderr
    assert HUGE in answer.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("network", ["small-99999999", "plain-100000", "wrn-10000-2", "wrn-28-99999"])
def test_a_network_that_no_memory_holds_is_refused(tmp_path, network):
    answer = arml("train", "ssl", "--network", network, "--out", str(tmp_path))
    assert answer.returncode == 1
    assert f"{network!r} is too large" in answer.stderr.replace("\n", " ")


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1"])
def test_pages_are_not_rewritten_without_pause(tmp_path, seconds):
    assert "--every should be" in arml("report", str(tmp_path), f"--every={seconds}").stderr


@pytest.mark.parametrize("seconds", ["nan", "0", "-1"])
def test_measurements_take_some_time(tmp_path, seconds):
    answer = arml("bench", "--seconds", seconds, "--out", str(tmp_path))
    assert "--seconds should be a positive number" in answer.stderr


@pytest.mark.parametrize("option", ["--cpus-per-run", "--gpus-per-run"])
@pytest.mark.parametrize("value", ["nan", "inf", HUGE])
def test_no_machine_has_so_many_cores(tmp_path, option, value):
    answer = arml("compare", "mlc", option, value, "--out", str(tmp_path))
    assert answer.returncode == 1
    assert f"{option} should be at most 10000" in answer.stderr


def test_seeds_that_torch_does_not_take_are_refused():
    with pytest.raises(ValueError, match="`seed` should be at most"):
        SemiSupervised(seed=2**64)


def test_long_names_are_cut_and_stay_different():
    one, two = (fit_file_name("ä" * 239 + end) for end in "ab")
    assert one != two
    assert len(one.encode()) <= 200
    assert fit_file_name("short") == "short"
