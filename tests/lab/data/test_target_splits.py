"""Few main labels: right shares, nothing used twice, more labels add to fewer."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from arml.lab.data.target_splits import FewLabels, few_labels, fold_labels
from arml.lab.data.targets import Rows, Target

NAN = float("nan")


def target(*counts: int, missing: int = 0) -> Target:
    """So many examples of class 0, 1, and so on, and then some without a label."""
    values = [float(c) for c, count in enumerate(counts) for _ in range(count)] + [NAN] * missing
    return Target(torch.tensor(values), tuple(f"c{c}" for c in range(len(counts))))


def per_class(main: Target, rows: torch.Tensor) -> list[int]:
    return torch.bincount(main.values[rows].long(), minlength=len(main.classes)).tolist()


def test_shares_of_a_hundred_rows():
    main = target(50, 30, 20, missing=7)
    drawn = few_labels(main, labels=16, seed=3)
    assert per_class(main, drawn.test) == [10, 6, 4]
    assert per_class(main, drawn.validation) == [8, 5, 3]  # a fifth of 40, 24 and 16: 8, 4.8 and 3.2
    assert per_class(main, drawn.main) == [8, 5, 3]
    assert len(drawn.aux) == 100 + 7 - 20 - 16
    assert drawn.aux[-7:].tolist() == list(range(100, 107))


def check_division(main: Target, drawn: FewLabels) -> None:
    for part in drawn:
        assert part.dtype == torch.int64
        assert part.tolist() == sorted(set(part.tolist()))
    assert set(drawn.main.tolist()) <= set(drawn.aux.tolist())
    for rows in (drawn.main, drawn.validation, drawn.test):
        assert bool(main.present[rows].all())
    everything = torch.cat([drawn.aux, drawn.validation, drawn.test])
    assert everything.sort().values.tolist() == list(range(len(main.values)))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(5, 60), min_size=2, max_size=5), st.integers(0, 20), st.integers(0, 99))
def test_laws_of_every_division(counts, missing, seed):
    main = target(*counts, missing=missing)
    full = few_labels(main, labels=0.999, seed=seed)
    wanted = sorted({len(counts), len(counts) + 1, len(full.main) // 3, len(full.main) // 2, len(full.main)})
    wanted = [labels for labels in wanted if labels >= len(counts)]
    draws = [few_labels(main, labels=labels, seed=seed) for labels in wanted]
    available = per_class(main, full.aux[main.present[full.aux]])
    for labels, drawn in zip(wanted, draws, strict=True):
        check_division(main, drawn)
        found = per_class(main, drawn.main)
        assert sum(found) == labels
        assert min(found) >= 1
        for have, of in zip(found, available, strict=True):
            # At most one from the exact share, and a few more where rare classes were given their one.
            assert abs(have - labels * of / sum(available)) <= 1 + len(counts) * (labels < 3 * len(counts))
    for fewer, more in pairwise(draws):
        assert set(fewer.main.tolist()) <= set(more.main.tolist())
        assert [part.tolist() for part in fewer[1:]] == [part.tolist() for part in more[1:]]


def test_the_seed_alone_decides():
    main = target(40, 40)
    first = few_labels(main, labels=10, seed=1)
    torch.manual_seed(5)
    again, other = few_labels(main, labels=10, seed=1), few_labels(main, labels=10, seed=2)
    assert [part.tolist() for part in first] == [part.tolist() for part in again]
    assert all(a.tolist() != b.tolist() for a, b in zip(first, other, strict=True))


def test_every_row_can_be_drawn():
    seen = torch.cat([few_labels(target(10, 10), labels=4, seed=seed).main for seed in range(60)])
    assert len(seen.unique()) == 20


def test_a_rare_class_has_its_label():
    main = target(300, 3)
    for seed in range(5):
        assert per_class(main, few_labels(main, labels=5, seed=seed).main) == [4, 1]


@pytest.mark.parametrize(("labels", "expected"), [(0.25, 16), (0.01, 2), (0.999, 64), (5, 5), (5.0, 5), (64, 64)])
def test_labels_are_a_count_or_a_share(labels, expected):
    assert len(few_labels(target(50, 50), labels=labels, seed=0).main) == expected


def test_a_share_counts_rows_with_a_main_label_only():
    assert len(few_labels(target(50, 50, missing=900), labels=0.25, seed=0).main) == 16


def test_a_number_has_no_classes_to_keep():
    main = Target(torch.cat([torch.linspace(0, 1, 50), torch.full((3,), NAN)]))
    drawn = few_labels(main, labels=1, seed=0)
    check_division(main, drawn)
    assert [len(part) for part in drawn] == [1, 35, 8, 10]
    assert len(few_labels(main, labels=0.001, seed=0).main) == 1


def test_a_division_of_its_own_is_kept():
    main = Target(torch.tensor([0, 1, NAN, 0, 1, NAN, 0, 1, NAN]), ("no", "yes"))
    rows = Rows(torch.tensor([0, 1, 2]), torch.tensor([3, 4, 5]), torch.tensor([6, 7, 8]))
    drawn = few_labels(main, labels=2, seed=0, rows=rows)
    assert [part.tolist() for part in drawn] == [[0, 1], [0, 1, 2], [3, 4], [6, 7]]


@pytest.mark.parametrize("labels", [0, -1, 1.5, NAN, float("inf"), 0.0])
def test_what_is_neither_a_count_nor_a_share_is_refused(labels):
    with pytest.raises(ValueError, match=f"whole number from 1 on, or a share .* Got {labels}"):
        few_labels(target(20, 20), labels=labels, seed=0)


def test_impossible_wishes_are_refused():
    with pytest.raises(ValueError, match=r"at least 3, one for every class, and at most 19, .* Got 2"):
        few_labels(target(10, 10, 10), labels=2, seed=0)
    with pytest.raises(ValueError, match=r"at most 26, .* Got 27"):
        few_labels(target(20, 20), labels=27, seed=0)
    with pytest.raises(ValueError, match="No training row with the main label 'c1'"):
        few_labels(target(20, 0, 20), labels=5, seed=0)
    with pytest.raises(ValueError, match="no label in any of its 4 rows"):
        few_labels(Target(torch.full((4,), NAN), ("a", "b")), labels=2, seed=0)
    with pytest.raises(ValueError, match="No row with a main label for: validation, test"):
        few_labels(target(1, 1, missing=9), labels=2, seed=0)
    main = Target(torch.tensor([0.0, 1.0, NAN, 0.0]), ("no", "yes"))
    rows = Rows(torch.tensor([0, 1]), torch.tensor([2]), torch.tensor([3]))
    with pytest.raises(ValueError, match="No row with a main label for: validation"):
        few_labels(main, labels=2, seed=0, rows=rows)


def test_without_a_number_all_labels_are_kept():
    main = Target(torch.tensor([0.0, 1.0] * 20 + [torch.nan] * 5), classes=("no", "yes"))
    parts = few_labels(main, labels=None, seed=0)
    assert len(parts.main) == 40 - len(parts.validation) - len(parts.test)
    assert len(parts.aux) == len(parts.main) + 5


@pytest.mark.parametrize("counts", [(50, 50), (97, 5), (30, 20, 10), (7, 7, 7, 7, 7)])
def test_five_seeds_test_every_label_once_with_the_classes_in_their_shares(counts):
    main = target(*counts, missing=9)
    drawn = [fold_labels(main, labels=None, seed=seed, folds=5) for seed in range(5)]
    tested = torch.cat([rows.test for rows in drawn])
    assert tested.sort().values.tolist() == main.present.nonzero().flatten().tolist()
    for rows in drawn:
        assert not len(rows.validation)
        assert set(rows.main.tolist()) | set(rows.test.tolist()) == set(main.present.nonzero().flatten().tolist())
        assert len(rows.aux) == len(main.values) - len(rows.test)
        found = per_class(main, rows.test)
        assert all(abs(have - of / 5) < 1 for have, of in zip(found, counts, strict=True))
    again = fold_labels(main, labels=None, seed=5, folds=5)
    assert again.test.tolist() != drawn[0].test.tolist(), "another repetition"


def test_labels_for_choosing_come_out_of_all_labels():
    main = target(100, 100)
    alone = fold_labels(main, labels=40, seed=3, folds=5)
    shared = fold_labels(main, labels=40, seed=3, folds=5, choosing=True)
    assert (len(alone.main), len(alone.validation)) == (40, 0)
    assert (len(shared.main), len(shared.validation)) == (32, 8)
    assert sorted([*shared.main.tolist(), *shared.validation.tolist()]) == alone.main.tolist()
    assert not set(shared.validation.tolist()) & set(shared.aux.tolist())
    assert per_class(main, shared.validation) == [4, 4]
    more = fold_labels(main, labels=60, seed=3, folds=5)
    assert set(alone.main.tolist()) < set(more.main.tolist())
    assert more.test.tolist() == alone.test.tolist()


def test_parts_with_one_class_are_refused():
    with pytest.raises(ValueError, match=r"All but 4 of the 100 main labels are the same, so one of 5 test parts"):
        fold_labels(target(96, 4), labels=None, seed=0, folds=5)
    with pytest.raises(ValueError, match=r"at least two labels.*Too few: 'c2' \(1\)"):
        fold_labels(target(20, 20, 1), labels=None, seed=0, folds=5)
    with pytest.raises(ValueError, match=r"The main target has 9 labels\. Cross-validation needs 10"):
        fold_labels(target(5, 4), labels=None, seed=0, folds=5)
    with pytest.raises(ValueError, match=r"1 main labels for choosing a network are all the same.*--select last"):
        fold_labels(target(20, 20), labels=5, seed=0, folds=5, choosing=True)
