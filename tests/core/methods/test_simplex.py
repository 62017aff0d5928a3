"""The projection onto the simplex."""

import pytest
import torch
from core.oracles import closest_on_simplex_by_bisection
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from arml import project_to_simplex
from arml.methods._simplex import shift_and_clamp

numbers = st.floats(-1e3, 1e3, allow_nan=False, width=64)
vectors = st.lists(numbers, min_size=1, max_size=12).map(lambda v: torch.tensor(v, dtype=torch.float64))
totals = st.floats(0, 50, allow_nan=False)
examples = settings(max_examples=200, deadline=None)


@examples
@given(v=vectors, total=totals)
def test_it_lies_on_the_simplex(v, total):
    p = project_to_simplex(v, total)
    assert bool((p >= 0).all())
    assert_close(p.sum(), torch.tensor(total, dtype=torch.float64), rtol=1e-9, atol=1e-9)


@examples
@given(v=vectors, total=totals)
def test_it_is_the_point_found_by_bisection(v, total):
    assert_close(project_to_simplex(v, total), closest_on_simplex_by_bisection(v, total), rtol=1e-7, atol=1e-7)


@examples
@given(v=vectors, total=st.floats(0.1, 50), seed=st.integers(0, 1000))
def test_no_other_point_of_the_simplex_is_closer(v, total, seed):
    p = project_to_simplex(v, total)
    other = torch.rand(len(v), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    other = other * total / other.sum()
    assert (v - p).norm() <= (v - other).norm() * (1 + 1e-9) + 1e-9


@examples
@given(v=vectors, total=totals)
def test_projecting_twice_is_projecting_once(v, total):
    once = project_to_simplex(v, total)
    assert_close(project_to_simplex(once, total), once, rtol=1e-9, atol=1e-9)


@examples
@given(v=vectors, total=totals, shift=numbers)
def test_a_common_shift_does_not_matter(v, total, shift):
    assert_close(project_to_simplex(v + shift, total), project_to_simplex(v, total), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_far_from_the_simplex_the_sum_is_still_right(dtype):
    p = project_to_simplex(torch.tensor([1e6, 1e6 + 0.5, -1e6], dtype=dtype), 2.0)
    assert_close(p, torch.tensor([0.75, 1.25, 0], dtype=dtype))


def test_shift_and_clamp_leaves_the_simplex_in_about_a_third_of_random_cases():
    torch.manual_seed(0)
    sums = torch.stack([shift_and_clamp(1 + torch.randn(3, dtype=torch.float64), 3.0).sum() for _ in range(1000)])
    assert 200 < int((sums > 3 + 1e-9).sum()) < 500
    assert bool((sums >= 3 - 1e-9).all())


def test_an_empty_vector_stays_empty():
    assert project_to_simplex(torch.zeros(0), 0.0).tolist() == []


@pytest.mark.parametrize(
    ("v", "total", "message"),
    [
        (torch.ones(2, 2), 1.0, r"shape \(2, 2\)"),
        (torch.tensor([1, 2]), 1.0, "int64"),
        (torch.tensor([1.0, float("nan")]), 1.0, "finite numbers"),
        (torch.tensor([1.0]), -1.0, "total -1.0"),
    ],
)
def test_errors_say_what_was_given(v, total, message):
    with pytest.raises(ValueError, match=message):
        project_to_simplex(v, total)
