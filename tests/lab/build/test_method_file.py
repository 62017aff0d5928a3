"""A method in a file of the user's."""

import re
from pathlib import Path

import pytest
import torch

from arml.lab.build.method_file import load_method

EXAMPLE = re.search(
    r"```python\n(# method_of_yours.py\n.*?)```", (Path(__file__).parents[3] / "docs/suite.md").read_text(), re.S
)


def write(folder, text, name="mine.py"):
    path = folder / name
    path.write_text(text)
    return str(path)


def test_the_example_of_the_page_is_a_method(tmp_path):
    method = load_method(write(tmp_path, EXAMPLE[1]))
    assert method.init(torch.zeros(3)).weights.tolist() == [1, 0.5, 0.5]


def test_make_is_called(tmp_path):
    assert (
        repr(load_method(write(tmp_path, "from arml import Uniform\n\ndef make():\n    return Uniform()\n")))
        == "Uniform()"
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", "neither `method` nor `make`"),
        ("method = 3\n", "has no init, needs, can_move, directions, update"),
        ("from arml import Uniform as method\n", "is a class, not an instance"),
        ("import no_such_package\n", "cannot be run: ModuleNotFoundError"),
    ],
)
def test_files_without_a_method_are_refused(tmp_path, text, words):
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        load_method(write(tmp_path, text))
    assert "It should hold a method named `method`" in str(error.value)


def test_names_that_are_taken_and_files_that_do_not_exist_are_refused(tmp_path):
    with pytest.raises(ValueError, match="Rename the file"):
        load_method(write(tmp_path, "", "arml.py"))
    with pytest.raises(ValueError, match="is no Python file"):
        load_method(str(tmp_path / "missing.py"))
