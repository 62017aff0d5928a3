"""A run with several domains becomes data, learner and batches."""

import pytest
import torch
from lab.own_data import write_shades
from lab.parts import make

from arml.lab.build import Folders, complete
from arml.lab.build.domains import DATASETS, LEARNERS
from arml.lab.build.settings import check_data
from arml.lab.experiments.domain_runs import Table
from arml.lab.run_kinds import Domains
from arml.lab.train import descend, losses_of, train


@pytest.fixture
def folders(tmp_path):
    return write_shades(tmp_path)


def test_every_learner_and_data_set_becomes_an_object_that_trains(tmp_path):
    for learner in LEARNERS:
        run = complete(Domains(learner=learner, network="plain-16", batch_source=4, steps=4))
        parts = make(run, tmp_path)
        assert (parts.reweighter is None) == (learner in ("main_only", "dsam"))
        for step in range(4):
            descend(parts, losses_of(parts, step))
        assert 0 <= parts.test(parts.network.eval())["error"] <= 100
    assert set(DATASETS) == {"digits", "digits_misleading", "pacs", "pacs_misleading", "folders"}


def test_equal_weights_are_the_loss_of_the_pooled_sources(tmp_path):
    parts = make(Domains(learner="baseline", method="uniform", network="plain-16"), tmp_path)
    losses = losses_of(parts, 0)
    assert losses.main is None, "the target's images are not even looked at"
    torch.testing.assert_close(descend(parts, losses), torch.stack(list(losses.aux.values())).mean())
    joint = make(Domains(learner="jt", method="uniform", network="plain-16"), tmp_path)
    losses = losses_of(joint, 0)
    torch.testing.assert_close(descend(joint, losses), losses.main + torch.stack(list(losses.aux.values())).mean())


def test_shots_are_no_test_images_and_more_of_them_are(folders, tmp_path):
    run = Domains(dataset="folders", folders=str(folders), target="ink", network="plain-16", image_size=16, shots=3)
    parts = make(run, tmp_path)
    assert len(parts.batches.samplers["target"].pool) == 6
    everything = make(Domains(**{**vars(run), "shots": "all"}), tmp_path)
    assert len(everything.batches.samplers["target"].pool) == 18
    none = make(Domains(**{**vars(run), "shots": 0}), tmp_path)
    assert "target" not in none.batches.samplers
    assert losses_of(none, 0).main is None


def test_a_source_may_be_called_target(folders, tmp_path):
    (folders / "oil").rename(folders / "target")
    run = Domains(dataset="folders", folders=str(folders), target="ink", network="plain-16", image_size=16, shots=1)
    batches = make(run, tmp_path).batches
    assert list(batches.next().sources) == ["clay", "target"]
    assert len(batches.sources["target"].sampler.pool) == 18
    assert len(batches.target.sampler.pool) == 2
    again = make(run, tmp_path).batches
    again.load_state_dict(batches.state_dict())
    assert torch.equal(again.next().sources["target"][0], batches.next().sources["target"][0])


def test_learners_that_use_no_target_label_see_no_target_image(tmp_path):
    for learner, method, seen in (("baseline", "uniform", 0), ("baseline", "arml", 20), ("jt", "uniform", 20)):
        parts = make(Domains(learner=learner, method=method, network="plain-16"), tmp_path)
        assert len(parts.batches.next().y) == seen


@pytest.mark.parametrize("learner", ["baseline", "jigen"])
def test_weightings_of_a_learner_that_only_steers_differ_in_nothing_but_the_weights(learner, tmp_path):
    """ARML with steps of nothing is the same network as equal weights, which see no target image: to the last bit."""

    def train_four_steps(**options):
        run = Domains(learner=learner, network="small-16", batch_source=6, steps=4, **options)
        parts = make(run, tmp_path)
        for step in range(4):
            descend(parts, losses_of(parts, step))
        return parts

    equal, steered = train_four_steps(method="uniform"), train_four_steps(method="arml", weight_lr=1e-30)
    assert set(steered.reweighter.weights.values()) == {1.0}
    assert len(steered.batches.next().y) == 20
    assert len(equal.batches.next().y) == 0
    torch.testing.assert_close(steered.network.state_dict(), equal.network.state_dict(), rtol=0, atol=0)
    # The comparison can fail: a step that moves the weights moves the network.
    moved = train_four_steps(method="arml", weight_lr=0.05, every=1)
    assert not torch.equal(moved.network.trunk.layer1[0].weight, equal.network.trunk.layer1[0].weight)


def test_without_shots_nothing_is_reweighted():
    assert complete(Domains(shots=0, method="arml")).method == "uniform"
    runs = Table(shot_counts=(0, 1), learners=("jt",), methods=("uniform", "arml")).runs(Domains(), seeds=1)
    assert [(run.shots, run.method) for run in runs] == [(0, "uniform"), (1, "uniform"), (1, "arml")]


def test_changed_folders_and_runs_inside_them(folders, tmp_path):
    run = Domains(dataset="folders", folders=str(folders), target="ink", image_size=16)
    before = complete(run)
    (folders / "ink" / "dark" / "0.png").unlink()
    assert complete(run).subject() != before.subject()
    with pytest.raises(ValueError, match=r"--out is inside .*shades"):
        check_data([run], Folders(tmp_path, folders / "runs" / "cache"))


def test_a_source_that_cannot_be_validated_is_refused(folders, tmp_path):
    for path in [*(folders / "oil" / "dark").iterdir()][1:] + [*(folders / "oil" / "light").iterdir()][1:]:
        path.unlink()
    run = Domains(dataset="folders", folders=str(folders), target="ink", image_size=16)
    with pytest.raises(ValueError, match="oil has too few images"):
        check_data([run], Folders(tmp_path, tmp_path / "cache"))


def test_from_nothing_is_said_where_the_paper_starts_from_imagenet(folders, tmp_path):
    run = Domains(dataset="folders", folders=str(folders), target="ink", image_size=32, network="resnet18")
    with pytest.warns(UserWarning, match="starts from nothing"):
        check_data([run], Folders(tmp_path, tmp_path / "cache"))


def test_the_last_network_is_tested_unless_sources_choose(tmp_path):
    assert make(Domains(network="plain-16"), tmp_path).score is None
    chosen = make(Domains(network="plain-16", select="sources"), tmp_path)
    assert chosen.score({"error": 3.0}) == 3.0


def test_fada_is_not_chosen_before_it_adapts(tmp_path, monkeypatch):
    run = Domains(learner="fada", network="plain-16", batch_source=4, select="sources", steps=4, evaluate_every=1)
    parts, errors = make(run, tmp_path), iter([1.0, 2.0, 5.0, 4.0])
    monkeypatch.setattr(parts, "validation", lambda _: {"error": next(errors)})
    assert train(run, parts, tmp_path / "run")["step"] == 4, "steps 1 and 2 prepare, 3 and 4 adapt"


def test_learners_that_are_not_reweighted_have_equal_weights():
    assert complete(Domains(learner="shape_bias", method="arml")).method == "uniform"
    assert complete(Domains(learner="main_only")).method == "uniform"
    assert complete(Domains(learner="jigen", method="arml")).method == "arml"
    with pytest.raises(ValueError, match=r"dsam.*Got --method ol_aux.*: baseline, jt, fada, jigen\."):
        complete(Domains(learner="dsam", method="ol_aux"))


def test_an_unknown_source_to_leave_out_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no domain 'mislead'"):
        check_data([Domains(leave_out=("mislead",))], Folders(tmp_path, tmp_path))
