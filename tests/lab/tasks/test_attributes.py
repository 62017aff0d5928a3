"""Losses of many targets: by hand, and against one target, one row at a time."""

import math

import pytest
import torch
from torch import nan, nn, tensor
from torch.testing import assert_close

from arml.gradients import DualNumbers, alignment, double_backward, pairwise
from arml.lab.data.targets import Target
from arml.lab.tasks import Attributes

LN2, LN3 = math.log(2), math.log(3)
BINARY, KINDS = ("no", "yes"), ("cat", "dog", "owl")


def drawn(rows=40, missing=0.3):
    """Two targets of every kind in a mixed order, some labels missing."""
    columns = {
        "age": (torch.randn(rows) * 15 + 40, ()),
        "smiles": (torch.randint(2, (rows,)).float(), BINARY),
        "kind": (torch.randint(3, (rows,)).float(), KINDS),
        "hat": (torch.randint(2, (rows,)).float(), BINARY),
        "height": (torch.randn(rows) * 0.2 + 1.7, ()),
        "colour": (torch.randint(4, (rows,)).float(), ("red", "green", "blue", "grey")),
    }
    return {
        name: Target(with_two_labels(values.double().masked_fill(torch.rand(rows) < missing, nan)), classes)
        for name, (values, classes) in columns.items()
    }


def with_two_labels(values):
    """Every target needs two different labels among the training rows, whatever is missing."""
    values[:2] = tensor([0.0, 1.0])
    return values


def slow_losses(targets, answers, rows, labels):
    """The same by loops over targets and rows, in float64; ``answers`` are the head's outputs by target."""
    losses = {}
    for k, (name, target) in enumerate(targets.items()):
        known = [float(v) for v in target.values[rows] if not math.isnan(v)]
        mean = sum(known) / len(known)
        std = (sum((v - mean) ** 2 for v in known) / len(known)) ** 0.5
        terms = []
        for z, y in zip(answers[name], labels[:, k].tolist(), strict=True):
            if math.isnan(y):
                continue
            if target.is_numeric:
                terms.append((z[0] - (y - mean) / std) ** 2)
            elif target.is_binary:
                terms.append(-torch.log(torch.sigmoid(z[0] if y == 1 else -z[0])))
            else:
                terms.append(-torch.log(torch.exp(z[int(y)]) / torch.exp(z).sum()))
        if terms:
            losses[name] = sum(terms) / len(terms)
    return losses


def standard_answers(attributes, outputs, rows):
    """``answers`` with numbers in standard units again."""
    answers = attributes.answers(outputs)
    for name, target in attributes.targets.items():
        if target.is_numeric:
            known = target.values[rows][target.present[rows]].double()
            answers[name] = (answers[name] - known.mean()) / known.std(correction=0)
    return answers


BINARY_TARGET, KINDS_TARGET = Target(tensor([0.0, 1.0]), BINARY), Target(tensor([0.0, 2.0]), KINDS)
NUMBER = Target(tensor([-1.0, 1.0]))
"""Mean 0 and standard deviation 1: standardising changes nothing."""


def loss_alone(target, outputs, labels):
    """The loss of the only target; its training rows are all it has."""
    attributes = Attributes({"only": target}, torch.arange(len(target.values)))
    return attributes.losses(outputs, labels.unsqueeze(1))["only"]


def test_one_target_by_hand():
    # Odds 3 : 1 for yes: -log 3/4 where it is yes, -log 1/4 where it is no.
    expected = -(math.log(3 / 4) + math.log(1 / 4)) / 2
    assert_close(loss_alone(BINARY_TARGET, tensor([[LN3], [LN3], [9.0]]), tensor([1.0, 0.0, nan])), tensor(expected))
    assert_close(loss_alone(KINDS_TARGET, tensor([[0.0, 0, LN2], [5, 6, 7]]), tensor([2.0, nan])), tensor(LN2))
    assert_close(loss_alone(NUMBER, tensor([[1.0], [2.0], [9.0]]), tensor([4.0, 3.0, nan])), tensor(5.0))


def test_many_targets_by_hand():
    """Ages 20 and 40 have mean 30 and standard deviation 10; the row that is not for training does not count.

    Two more training rows, of which the age is not known, are not in the batch.
    """
    age, kind = Target(tensor([20.0, 40.0, 60.0, nan, nan])), Target(tensor([0.0, nan, 2.0, 1.0, 2.0]), KINDS)
    smiles = Target(tensor([nan, 1.0, 0.0, 1.0, 0.0]), BINARY)
    attributes = Attributes({"age": age, "kind": kind, "smiles": smiles}, rows=tensor([0, 1, 3, 4]))
    assert attributes.num_outputs == 5
    # Side by side: binary targets, numbers, then those with more classes.
    outputs = tensor([[0.0, 2.0, LN2, 0, 0], [LN3, 0.0, 0, 0, 0], [-LN3, 1.0, 0, 0, 0]])
    losses = attributes.losses(outputs, attributes.labels[:3])
    assert list(losses) == ["age", "kind", "smiles"]
    assert_close(losses["age"], tensor((3.0**2 + 1**2 + 2**2) / 3))  # labels are -1, 1 and 3 in these units
    assert_close(losses["kind"], tensor((LN2 + LN3) / 2))
    assert_close(losses["smiles"], tensor(math.log(4 / 3)))
    answers = attributes.answers(outputs)
    assert_close(answers["age"], tensor([[50.0], [30.0], [40.0]]))
    assert_close(answers["kind"], outputs[:, 2:])
    assert_close(answers["smiles"], outputs[:, :1])


@pytest.mark.parametrize("chosen", [slice(None), slice(1, 2), slice(2, 4), slice(3, 5), slice(0, 1), slice(5, 6)])
@pytest.mark.parametrize("missing", [0.0, 0.3, 0.9])
def test_all_at_once_and_one_by_one_agree(chosen, missing):
    """Losses and gradients, for mixed targets and for targets of one kind."""
    targets = dict(list(drawn(missing=missing).items())[chosen])
    rows = torch.arange(30)
    attributes = Attributes(targets, rows)
    outputs = torch.randn(12, attributes.num_outputs, dtype=torch.float64, requires_grad=True)
    labels = attributes.labels[25:37]
    fast = attributes.losses(outputs, labels)
    slow = slow_losses(targets, standard_answers(attributes, outputs, rows), rows, labels)
    assert list(fast) == list(slow)
    for name in fast:
        assert_close(fast[name], slow[name], rtol=1e-9, atol=1e-12)
        gradients = [torch.autograd.grad(losses[name], outputs, retain_graph=True)[0] for losses in (fast, slow)]
        assert_close(*gradients, rtol=1e-9, atol=1e-12)


def test_missing_labels_never_reach_a_gradient():
    targets = drawn(missing=0.8)
    attributes = Attributes(targets, torch.arange(40))
    head = nn.Linear(5, attributes.num_outputs)
    losses = attributes.losses(head(torch.randn(40, 5)), attributes.labels)
    sum(losses.values()).backward()
    assert all(bool(p.grad.isfinite().all()) for p in head.parameters())
    outputs = torch.zeros(3, 1, requires_grad=True)
    loss_alone(NUMBER, outputs, tensor([nan, 1.0, nan])).backward()
    assert outputs.grad.flatten().tolist() == [0, -2, 0]


def test_targets_without_a_label_in_the_batch_are_left_out():
    targets = drawn(missing=0.0)
    attributes = Attributes(targets, torch.arange(40))
    labels = attributes.labels[:8].clone()
    labels[:, [0, 1, 5]] = nan
    outputs = torch.randn(8, attributes.num_outputs, requires_grad=True)
    losses = attributes.losses(outputs, labels)
    assert list(losses) == ["kind", "hat", "height"]
    sum(losses.values()).backward()
    assert bool(outputs.grad.isfinite().all())
    assert attributes.losses(outputs, torch.full_like(labels, nan)) == {}


def test_every_engine_can_differentiate_them():
    attributes = Attributes(drawn(missing=0.2), torch.arange(40))
    trunk, head = nn.Linear(5, 7).double(), nn.Linear(7, attributes.num_outputs).double()
    x = torch.randn(40, 5, dtype=torch.float64)

    def losses():
        return torch.stack(list(attributes.losses(head(trunk(x).tanh()), attributes.labels).values()))

    direction = torch.randn(1, 6, dtype=torch.float64)
    expected, *others = (
        alignment(list(losses()), trunk, direction, engine=engine)
        for engine in (pairwise, double_backward, DualNumbers(losses, trunk))
    )
    for found in others:
        assert_close(found, expected)


def test_hundreds_of_targets_need_no_more_operations_than_two():
    """The graph has a node per operation: those of the losses do not grow with K but for picking each one out."""

    def operations(k):
        targets = {f"t{i}": Target(tensor([0.0, 1.0]), BINARY if i % 2 else ()) for i in range(k)}
        attributes = Attributes(targets, torch.arange(2))
        with torch.profiler.profile() as profile:
            attributes.losses(torch.zeros(2, k, requires_grad=True), attributes.labels)
        names = [event.name for event in profile.events()]
        return len([name for name in names if name.startswith("aten::binary_cross") or name == "aten::square"])

    assert operations(200) == operations(2)


WRONG = {
    "none": (lambda: Attributes({}, tensor([0])), "at least one target"),
    "one class": (lambda: Attributes({"t": Target(tensor([0.0]), ("a",))}, tensor([0])), "'t'.*at least two classes"),
    "class 2 of two": (lambda: Attributes({"t": Target(tensor([0.0, 2]), BINARY)}, tensor([0])), r"'t'.*\[0.0, 2.0\]"),
    "class 0.5": (lambda: Attributes({"t": Target(tensor([0.5]), KINDS)}, tensor([0])), r"cat, dog, owl.*\[0.5\]"),
    "constant": (
        lambda: Attributes({"t": Target(tensor([3.0, 3, 4]))}, tensor([0, 1])),
        "'t'.* label, 3, .*2 training",
    ),
    "unlabelled": (lambda: Attributes({"t": Target(tensor([nan, 3, 4]))}, tensor([0])), "'t' has no label.* 1 train"),
    "no class": (lambda: Attributes({"t": Target(tensor([nan, nan, 1]), KINDS)}, tensor([0, 1])), "no label.* 2 train"),
    "same class": (lambda: Attributes({"t": Target(tensor([1.0, nan, 0]), KINDS)}, tensor([0, 1])), "label, 'dog',"),
    "outputs": (lambda: two().losses(torch.zeros(4, 3), torch.zeros(4, 2)), r"`outputs`.*\[B, 2\].*\[4, 3\]"),
    "labels": (lambda: two().losses(torch.zeros(4, 2), torch.zeros(4)), r"`labels`.*\[B, 2\].*\[4\]"),
    "rows": (lambda: two().losses(torch.zeros(4, 2), torch.zeros(3, 2)), "3 rows of labels for 4"),
    "answers": (lambda: two().answers(torch.zeros(4)), r"`outputs`.*\[B, 2\].*\[4\]"),
}


def two():
    return Attributes({"a": Target(tensor([0.0, 1])), "b": Target(tensor([0.0, 1]), BINARY)}, tensor([0, 1]))


@pytest.mark.parametrize("case", WRONG)
def test_errors_say_what_was_given(case):
    make, message = WRONG[case]
    with pytest.raises(ValueError, match=message):
        make()


def test_numbers_far_from_zero_keep_their_differences():
    seconds = Target(tensor([1.7e9, 1.7e9 + 2, 1.7e9 + 4], dtype=torch.float64))
    attributes = Attributes({"time": seconds}, torch.arange(3))
    loss = attributes.losses(torch.zeros(2, 1), attributes.labels[:2])["time"]
    assert_close(loss, tensor((1.5 + 0) / 2))  # 2 away from the mean, and the variance is 8 / 3


def test_numbers_far_from_zero_keep_their_differences_beside_others_and_in_answers():
    seconds = Target(tensor([1.7e9 - 3, 1.7e9 + 3, nan], dtype=torch.float64))
    attributes = Attributes({"hat": Target(tensor([0.0, 1, 1]), BINARY), "time": seconds}, torch.arange(3))
    outputs = tensor([[0.0, -1.0], [0.0, 1.0], [0.0, 0.0]])
    losses = attributes.losses(outputs, attributes.labels)
    assert_close(losses["time"], tensor(0.0))
    assert_close(losses["hat"], tensor(LN2))
    answers = attributes.answers(outputs)
    assert answers["hat"].dtype == torch.float32
    assert (answers["time"][:, 0] - 1.7e9).tolist() == [-3, 3, 0]
