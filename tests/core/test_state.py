"""The state of a Reweighter: tensors only, matched by name, with a version."""

import copy
import io
import json
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from arml import ARML, AdaLoss, Convergence, Fixed, GatedARML, GradNorm, Reweighter, Uniform
from arml.packing import FORMAT, pack, unpack

TASKS = ["rotation", "colours", "jigsaw"]
METHODS = [ARML(), ARML(scale_free=True), GatedARML(), GradNorm(), AdaLoss(), Uniform(), Fixed([1.0, 0.5, 2.0])]
every_method = pytest.mark.parametrize("method", METHODS, ids=repr)


class Model(nn.Module):
    """A network that holds its Reweighter, as models do that compute their own loss."""

    def __init__(self, method=ARML(), tasks=TASKS, **settings):  # noqa: B008 -- frozen
        super().__init__()
        torch.manual_seed(0)
        self.trunk = nn.Linear(3, 4)
        self.heads = nn.ModuleDict({name: nn.Linear(4, 1) for name in ("main", *sorted(tasks))})
        self.reweighter = Reweighter(method, tasks, self.trunk, **{"every": 1, **settings})

    def loss(self, step):
        x = torch.randn(6, 3, generator=torch.Generator().manual_seed(step)).to(self.trunk.weight)
        features = self.trunk(x).tanh()
        targets = {name: x[:, i % 3] * (1 + i) for i, name in enumerate(("main", *sorted(TASKS)))}
        losses = {n: (head(features)[:, 0] - targets[n]).square().mean() for n, head in self.heads.items()}
        return self.reweighter(main=losses.pop("main"), aux=losses)


def train(model, steps):
    optimizer, history = torch.optim.SGD(model.parameters(), lr=0.1), []
    for step in steps:
        optimizer.zero_grad()
        model.loss(step).backward()
        optimizer.step()
        history.append(model.reweighter.weights)
    return history


def state_of(model):
    return unpack(model.reweighter.get_extra_state())


@every_method
def test_state_is_tensors_only(method):
    """The rules of safetensors: a flat dictionary of contiguous tensors, no two of which share memory."""
    model = Model(method)
    train(model, range(3))
    state = model.state_dict()
    assert "reweighter._extra_state" in state
    assert all(isinstance(name, str) and isinstance(part, torch.Tensor) for name, part in state.items())
    assert all(part.is_contiguous() for part in state.values())
    again = model.state_dict()["reweighter._extra_state"]
    assert state["reweighter._extra_state"].untyped_storage().data_ptr() != again.untyped_storage().data_ptr()
    assert torch.equal(state["reweighter._extra_state"], again)


@every_method
def test_state_resumes_from_safetensors(method, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    model = Model(method)
    train(model, range(3))
    safetensors.save_file(model.state_dict(), tmp_path / "model.safetensors")
    resumed = Model(method)
    resumed.load_state_dict(safetensors.load_file(tmp_path / "model.safetensors"))
    assert train(resumed, range(3, 6)) == train(model, range(3, 6))


@every_method
@pytest.mark.parametrize("strict", [True, False])
def test_state_resumes_exactly_inside_a_model(method, strict):
    model = Model(method, convergence=Convergence(window=2))
    train(model, range(3))
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    resumed = Model(method, convergence=Convergence(window=2))
    resumed.load_state_dict(torch.load(file, weights_only=True), strict=strict)
    assert train(resumed, range(3, 9)) == train(model, range(3, 9))


def test_state_keeps_its_size():
    """Tools that compare the shapes of a checkpoint with those of a fresh model must find them equal."""
    model = Model()
    before = model.state_dict()["reweighter._extra_state"].shape
    train(model, range(3))
    model.reweighter._calls = 10**9
    assert model.state_dict()["reweighter._extra_state"].shape == before


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_state_keeps_its_precision_when_the_model_is_cast(dtype):
    model = Model()
    train(model, range(3))
    before = model.reweighter.weights
    model.to(dtype)
    assert model.reweighter.weights == before
    other = Model().to(dtype)
    other.load_state_dict(model.state_dict())
    assert other.reweighter.weights == before
    assert state_of(other)["memory"]["weights"].dtype == torch.float64


def test_state_is_copied_with_the_model():
    model = Model()
    train(model, range(3))
    twin = copy.deepcopy(model)
    assert torch.equal(twin.reweighter.get_extra_state(), model.reweighter.get_extra_state())


@every_method
def test_construction_under_the_meta_device(method):
    with torch.device("meta"):
        model = Model(method)
    assert model.trunk.weight.is_meta
    assert set(model.reweighter.weights) == set(TASKS)
    model.to_empty(device="cpu")
    trained = Model(method)
    train(trained, range(3))
    model.load_state_dict(trained.state_dict())
    assert model.reweighter.weights == trained.reweighter.weights
    assert all(part.device.type == "cpu" for part in model.reweighter._memory)


@pytest.mark.parametrize("strict", [True, False])
def test_settings_may_change_on_resume(strict):
    model = Model(ARML(lr=0.05))
    train(model, range(3))
    resumed = Model(ARML(lr=0.5, scale_free=True), every=3, aux_scale=2.0)
    resumed.load_state_dict(model.state_dict(), strict=strict)
    assert resumed.reweighter.weights == model.reweighter.weights
    assert resumed.reweighter.method.lr == 0.5
    train(resumed, range(3, 9))


def test_weights_that_never_change_come_from_the_settings():
    resumed = Model(Fixed([3.0, 2.0, 1.0]))
    resumed.load_state_dict(Model(Fixed([1.0, 1.0, 1.0])).state_dict())
    assert list(resumed.reweighter.weights.values()) == [3.0, 2.0, 1.0]


@pytest.mark.parametrize("method", [ARML(), GatedARML(warmup=1), GradNorm(), AdaLoss()], ids=repr)
def test_tasks_in_another_order_are_matched_by_name(method):
    model, resumed = Model(method), Model(method, tasks=TASKS[::-1])
    train(model, range(3))
    resumed.load_state_dict(model.state_dict())
    assert resumed.reweighter.weights == model.reweighter.weights
    mine, others = train(model, range(3, 6)), train(resumed, range(3, 6))
    for a, b in zip(mine, others, strict=True):
        assert a == pytest.approx(b, rel=1e-5)


@pytest.mark.parametrize("strict", [True, False])
def test_what_must_match_is_named(strict):
    state = Model(ARML()).state_dict()
    with pytest.raises(
        ValueError, match=r"made with the tasks \['rotation', 'colours', 'jigsaw'\].*has \['rotation'\]"
    ):
        Model(tasks=["rotation"]).reweighter.load_state_dict({"_extra_state": state["reweighter._extra_state"]})
    with pytest.raises(ValueError, match=r"method ARML\(lr=0.05.*has GatedARML.*the type may not: use ARML"):
        Model(GatedARML()).load_state_dict(state, strict=strict)


def test_memory_of_another_shape_is_refused():
    model = Model()
    saved = state_of(model)
    saved["memory"]["mean_square"] = torch.zeros(7)
    with pytest.raises(ValueError, match=r"holds the memory .*'mean_square': \(7,\).*ARML needs"):
        model.reweighter.set_extra_state(pack(saved))


def test_a_part_of_the_memory_that_an_older_version_lacks_keeps_its_first_value():
    model = Model(ARML(scale_free=True))
    train(model, range(3))
    saved = state_of(model)
    del saved["memory"]["updates"]
    model.reweighter.set_extra_state(pack(saved))
    assert float(model.reweighter._memory.updates) == 0
    assert torch.equal(model.reweighter._memory.mean_square, saved["memory"]["mean_square"])


def test_another_rule_of_convergence_keeps_whether_the_weights_have_settled():
    model = Model()
    saved = state_of(model)
    saved["convergence"] = {"drift": torch.zeros(9), "settled": torch.tensor(True)}
    model.reweighter.set_extra_state(pack(saved))
    assert model.reweighter.converged


def old_state(method="Uniform()"):
    """A literal of format 1, as version 0.1.0 wrote it."""
    return {
        "tasks": ["a"],
        "method": method,
        "calls": 9,
        "calls_to_wait": 3,
        "weights": torch.tensor([1.0, 1.0], dtype=torch.float64),
        "memory": [torch.tensor([1.0, 1.0], dtype=torch.float64)],
        "progress": [
            torch.tensor([2.0, 1.0], dtype=torch.float64),  # sum over the current window
            torch.tensor(2.0, dtype=torch.float64),  # updates in it
            torch.tensor([1.0, 0.5], dtype=torch.float64),  # average over the last window
            torch.tensor(0.25, dtype=torch.float64),  # path
            torch.tensor(True),  # settled
        ],
    }


def test_older_states_load():
    """Checkpoints that were saved as dictionaries, without a version."""
    reweighter = Reweighter(Uniform(), ["a"], nn.Linear(2, 1))
    reweighter.load_state_dict({"_extra_state": old_state()})
    assert (reweighter._calls, reweighter._calls_to_wait, reweighter.converged) == (9, 3, True)


def test_older_states_of_a_method_with_memory_load():
    saved = old_state("ARML(lr=0.05, projection='euclidean', scale_free=True, decay=0.99)")
    saved["weights"] = torch.tensor([1.0, 0.25], dtype=torch.float64)
    saved["memory"] = [saved["weights"], torch.tensor(4.0).double(), torch.tensor(5.0).double()]
    saved["progress"][-1] = torch.tensor(False)
    reweighter = Reweighter(ARML(lr=0.1), ["a"], nn.Linear(2, 1))
    reweighter.load_state_dict({"_extra_state": saved})
    assert reweighter.weights == {"a": 0.25}
    assert (float(reweighter._memory.mean_square), float(reweighter._memory.updates)) == (4.0, 5.0)
    assert not reweighter.converged
    with pytest.raises(ValueError, match=r"made with the method ARML\(.*this Reweighter has GatedARML"):
        Reweighter(GatedARML(), ["a"], nn.Linear(2, 1)).load_state_dict({"_extra_state": saved})


def test_a_newer_format_is_refused():
    packed = Model().reweighter.get_extra_state()
    size = int.from_bytes(bytes(packed[:8].tolist()), "little")
    header = json.loads(bytes(packed[8 : 8 + size].tolist()))
    assert header["format"] == FORMAT
    text = json.dumps({**header, "format": FORMAT + 1}).encode()
    newer = torch.tensor([*len(text).to_bytes(8, "little"), *text], dtype=torch.uint8)
    with pytest.raises(
        ValueError, match=rf"has format {FORMAT + 1}; this version of arml reads formats up to {FORMAT}"
    ):
        Model().reweighter.set_extra_state(newer)


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        (lambda packed: packed.to(torch.bfloat16), "without a cast"),
        (lambda packed: packed.to("meta"), "on meta"),
        (lambda packed: packed[:40], "a part of them is missing"),
        (lambda packed: torch.zeros(0, dtype=torch.uint8), "not the state of a Reweighter"),
    ],
)
def test_damaged_states_are_refused(damaged, message):
    model = Model()
    with pytest.raises(ValueError, match=message):
        model.reweighter.set_extra_state(damaged(model.reweighter.get_extra_state()))


def test_packing_keeps_everything():
    state = {
        "engines": {"failed": ["double_backward"], "checks": 7, "none": None, "directions": torch.randn(2, 3)},
        "numbers": [1, 0.1, True, math.inf, "ü"],
        "tensors": [
            torch.zeros(0, 3),
            torch.tensor(True),
            torch.tensor([1.5, math.nan], dtype=torch.bfloat16),
            torch.arange(6).reshape(2, 3).T,
        ],
    }
    found = unpack(pack(state, room=2000))
    assert found["numbers"] == state["numbers"]
    assert found["engines"]["failed"] == ["double_backward"]
    assert found["engines"]["none"] is None
    assert_close(found["engines"]["directions"], state["engines"]["directions"], rtol=0, atol=0)
    assert_close(found["tensors"], state["tensors"], rtol=0, atol=0, equal_nan=True)


def test_packing_refuses_what_it_does_not_know():
    with pytest.raises(TypeError, match="Got set"):
        pack({"engines": {"a"}})
    with pytest.raises(TypeError, match="names as keys"):
        pack({"engines": {1: 2}})
