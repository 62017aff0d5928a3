"""The sampler: every epoch covers the pool, and a stopped one goes on exactly."""

import io
from itertools import islice

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arml.lab.data import Sampler

examples = settings(max_examples=80, deadline=None)
sizes, seeds = st.integers(1, 20), st.integers(0, 1_000)


def pool_of(size: int) -> torch.Tensor:
    return 3 + 7 * torch.arange(size)


@examples
@given(size=sizes, batch=st.integers(1, 50), seed=seeds)
def test_every_epoch_covers_the_pool_once(size, batch, seed):
    sampler = Sampler(pool_of(size), batch, seed)
    drawn = torch.cat([sampler.next() for _ in range(3 * size)])
    assert len(drawn) == 3 * size * batch
    for epoch in drawn.split(size)[:-1]:
        assert sorted(epoch.tolist()) == pool_of(size).tolist()


@examples
@given(size=sizes, batch=st.integers(1, 50), seed=seeds, stop=st.integers(0, 30))
def test_a_stopped_sampler_goes_on_exactly(size, batch, seed, stop):
    sampler = Sampler(pool_of(size), batch, seed)
    for _ in range(stop):
        sampler.next()
    file = io.BytesIO()
    torch.save(sampler.state_dict(), file)
    file.seek(0)
    expected = torch.stack(list(islice(sampler, 10)))
    resumed = Sampler(pool_of(size), batch, seed + 1)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(torch.stack(list(islice(resumed, 10))), expected)


def test_a_state_does_not_change_while_the_sampler_goes_on():
    sampler = Sampler(pool_of(7), 3, 0)
    state = sampler.state_dict()
    first = [next(sampler).tolist() for _ in range(9)]
    sampler.load_state_dict(state)
    assert [next(sampler).tolist() for _ in range(9)] == first
    sampler.load_state_dict(state)
    assert [next(sampler).tolist() for _ in range(9)] == first


def test_the_seed_alone_decides_and_epochs_differ():
    def drawn(seed: int) -> list[int]:
        sampler = Sampler(pool_of(30), 30, seed)
        return torch.cat([next(sampler), next(sampler)]).tolist()

    torch.manual_seed(3)
    first = drawn(0)
    torch.manual_seed(4)
    assert drawn(0) == first
    assert drawn(1) != first
    assert first[:30] != first[30:]


def test_what_cannot_be_sampled_is_refused():
    with pytest.raises(ValueError, match="at least one index"):
        Sampler(torch.tensor([], dtype=torch.int64), 2, 0)
    with pytest.raises(ValueError, match=r"int64. Got shape \(3,\), torch.float32"):
        Sampler(torch.ones(3), 2, 0)
    with pytest.raises(ValueError, match=r"at least 1\. Got 0"):
        Sampler(pool_of(3), 0, 0)
    with pytest.raises(ValueError, match="pool of 4 indices, this sampler has 3"):
        Sampler(pool_of(3), 2, 0).load_state_dict(Sampler(pool_of(4), 2, 0).state_dict())
