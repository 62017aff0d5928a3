"""What a session measures by default, and that every part of the result comes out as soon as it is there."""

from contextlib import contextmanager

import pytest

from arml.bench import session as session_module
from arml.bench.contenders import RECOMMENDED
from arml.bench.problems import MLP, RESNET, TRANSFORMER
from arml.bench.session import Session, begin, measure


def test_a_session_measures_everything_unless_it_is_quick():
    everything, quick = Session(), Session(quick=True)
    assert [kind.name for kind in everything.chosen_kinds()][:3] == ["MLP", "WRN-28-2", "ResNet18"]
    assert "WRN-28-2" not in [kind.name for kind in quick.chosen_kinds()]
    assert (everything.chosen_num_aux(), quick.chosen_num_aux()) == ((2, 10, 39, 120, 200), (2, 39))
    assert everything.chosen_parts() == ("schedule", "recommended", "phases", "scaling", "processes")
    assert quick.chosen_parts() == ("schedule", "recommended")
    assert (everything.plan().repeats, quick.plan().repeats) == (15, 2)
    assert (everything.batch_of(RESNET), quick.batch_of(RESNET)) == (RESNET.batch, RESNET.quick_batch)


def test_what_is_given_counts():
    given = Session(kinds=("transformer",), num_aux=(3,), parts=(), repeats=4, batch=5, quick=True)
    assert given.chosen_kinds() == [TRANSFORMER]
    assert (given.chosen_num_aux(), given.chosen_parts()) == ((3,), ())
    assert (given.plan().repeats, given.batch_of(TRANSFORMER)) == (4, 5)
    assert begin(given).settings == {
        "repeats": 4,
        "seconds": 240.0,
        "threads": 1,
        "device": "cpu",
        "brief": True,
        "num_aux": (3,),
        "clock": "process_time",
    }


def test_results_grow_kind_by_kind_and_progress_is_reported():
    titles, ticks = [], []

    @contextmanager
    def watch(title):
        titles.append(title)
        yield lambda *tick: ticks.append(tick)

    tiny = Session(kinds=("mlp", "transformer"), num_aux=(2,), parts=(), repeats=1, batch=2, quick=True)
    steps = measure(begin(tiny), tiny, watch)
    first = next(steps)
    assert ([facts.name for facts in first.kinds], titles) == ([MLP.name], [MLP.name])
    (second,) = steps
    assert [facts.name for facts in second.kinds] == titles == [MLP.name, TRANSFORMER.name]
    assert second.timings[: len(first.timings)] == first.timings
    assert ticks[-1][0] == ticks[-1][1] > 0
    assert not any(name in second.kinds[0].ways for name in ("CosineSim", "OL_AUX", "Gated ARML", RECOMMENDED))


@pytest.mark.parametrize("part", ["phases", "processes"])
def test_parts_without_turns_show_that_they_have_begun(part, monkeypatch):
    seen = []

    @contextmanager
    def watch(title):
        del title
        yield lambda *tick: seen.append(tick)

    def measuring(*_):
        assert seen  # the bar is there
        return []

    monkeypatch.setattr(session_module.step_profile, "step_phases", measuring)
    monkeypatch.setattr(session_module.step_profile, "step_operations", measuring)
    monkeypatch.setattr(session_module.processes, "process_costs", measuring)
    one = Session(kinds=(), parts=(part,), quick=True)
    (result,) = measure(begin(one), one, watch)
    assert seen == [(0, 2), (1, 2), (2, 2)]
    assert result.processes == result.phases == ()
