"""CIFAR-10 files, in both original formats, sound and not."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lab.data.dataset_checks import check_photographs
from lab.data.original_formats import cifar_binary, cifar_pickles, cifar_rows, write_pickle

from arml.lab.data import DataError, cifar10

DATA = os.environ.get("ARML_DATA")


@pytest.mark.parametrize("write", [cifar_pickles, cifar_binary])
@pytest.mark.parametrize("rows", [1, 4])
def test_every_image_is_read_in_order(tmp_path, write, rows):
    write(tmp_path, rows)
    dataset = cifar10.load(tmp_path)
    assert dataset.name == "cifar10"
    assert dataset.num_classes == 10
    assert dataset.train.x.dtype == torch.uint8
    assert dataset.train.y.dtype == torch.int64
    train = [cifar_rows(seed, rows) for seed in range(5)]
    assert dataset.train.x.numpy().tobytes() == b"".join(data.tobytes() for data, _ in train)
    assert dataset.train.y.tolist() == [label for _, labels in train for label in labels]
    assert dataset.test.x.shape == (rows, 3, 32, 32)
    assert dataset.test.y.tolist() == cifar_rows(5, rows)[1]


def test_the_writer_makes_the_header_of_the_originals(tmp_path):
    text = (cifar_pickles(tmp_path) / "test_batch").read_bytes()
    assert text.startswith(b"\x80\x02}")
    assert b"cnumpy.core.multiarray\n_reconstruct\n" in text
    assert b"_codecs" not in text


def test_pickles_win_over_the_binary_version(tmp_path):
    cifar_binary(tmp_path, rows=2)
    cifar_pickles(tmp_path, rows=3)
    assert len(cifar10.load(tmp_path).test.y) == 3


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_pickles_made_by_python_3_are_read_unless_they_need_more_than_arrays(tmp_path, protocol):
    folder = cifar_pickles(tmp_path)
    data, labels = cifar_rows(9)
    (folder / "test_batch").write_bytes(pickle.dumps({"data": data, "labels": labels}, protocol=protocol))
    if protocol == 2:  # Python 3 writes bytes as a call of a codec there
        with pytest.raises(DataError, match=r"test_batch.*forbidden global _codecs\.encode"):
            cifar10.load(tmp_path)
    else:
        assert cifar10.load(tmp_path).test.y.tolist() == labels


def test_an_array_in_fortran_order_is_read_as_the_same_array(tmp_path):
    folder = cifar_pickles(tmp_path)
    data, labels = cifar_rows(9)
    write_pickle(folder / "test_batch", {"data": np.asfortranarray(data), "labels": labels})
    assert cifar10.load(tmp_path).test.x.numpy().tobytes() == data.tobytes()


class Command:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.mark.parametrize("wrap", [lambda c: c, lambda c: {"data": c, "labels": []}, lambda c: [c]])
def test_a_pickle_that_runs_a_command_is_refused_and_does_not_run_it(tmp_path, wrap):
    folder = cifar_pickles(tmp_path)
    witness = tmp_path / "witness"
    hostile = pickle.dumps(wrap(Command(f"touch {witness}")), protocol=2)
    (folder / "data_batch_3").write_bytes(hostile)
    with pytest.raises(DataError, match=r"data_batch_3.*forbidden global (posix|nt)\.system, which was not run"):
        cifar10.load(tmp_path)
    assert not witness.exists()
    pickle.loads(hostile)  # the attack itself is real
    assert witness.exists()


@pytest.mark.parametrize(
    "name",
    ["builtins.eval", "numpy.load", "numpy.core.multiarray.scalar", "arml.lab.data.cifar10.load", "os.path.join"],
)
def test_no_other_global_is_handed_out(tmp_path, name):
    folder = cifar_pickles(tmp_path)
    module, attribute = name.rsplit(".", 1)
    (folder / "test_batch").write_bytes(f"c{module}\n{attribute}\n.".encode())
    with pytest.raises(DataError, match="forbidden global"):
        cifar10.load(tmp_path)


def test_a_hostile_dtype_never_reaches_numpy(tmp_path):
    folder = cifar_pickles(tmp_path)
    pointers = np.array([[None] * 3072], dtype=object)
    write_pickle(folder / "test_batch", {"data": pointers, "labels": [0]})
    with pytest.raises(DataError, match="array of another type"):
        cifar10.load(tmp_path)


WRONG = {
    "keys": (lambda d, y: {"data": d, "fine_labels": y}, "only the keys data, fine_labels"),
    "object": (lambda d, y: [d, y], "type list"),
    "shape": (lambda d, y: {"data": d[:, :-1], "labels": y}, r"shape \[3, 3071\]"),
    "rank": (lambda d, y: {"data": d.reshape(3, 3, 32, 32), "labels": y}, r"shape \[3, 3, 32, 32\]"),
    "empty": (lambda d, y: {"data": d[:0], "labels": []}, r"shape \[0, 3072\]"),
    "dtype": (lambda d, y: {"data": d.astype(np.float32), "labels": y}, "array of another type"),
    "list": (lambda d, y: {"data": d.tolist(), "labels": y}, "type list"),
    "count": (lambda d, y: {"data": d, "labels": y[:-1]}, "2 labels and 3 images"),
    "labels": (lambda d, y: {"data": d, "labels": [0, 10, 1]}, "from 0 to 9"),
    "floats": (lambda d, y: {"data": d, "labels": [0.0, 1.0, 1.0]}, "from 0 to 9"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_file_that_holds_something_else_is_named(tmp_path, case):
    folder = cifar_pickles(tmp_path)
    content, message = WRONG[case]
    write_pickle(folder / "data_batch_2", content(*cifar_rows(0)))
    with pytest.raises(DataError, match=rf"data_batch_2: expected .*{message}.*arml data fetch cifar10.*ARML_DATA"):
        cifar10.load(tmp_path)


@pytest.mark.parametrize("missing", ["data_batch_4", "test_batch"])
def test_a_missing_file_is_named(tmp_path, missing):
    (cifar_pickles(tmp_path) / missing).unlink()
    with pytest.raises(DataError, match=rf"{missing}: expected .* found no such file.*arml data fetch cifar10"):
        cifar10.load(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(DataError, match=r"cifar-10-batches-py.data_batch_1.*--data-dir"):
        cifar10.load(tmp_path / "nowhere")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(share=st.floats(0, 1, exclude_max=True))
def test_a_pickle_cut_anywhere_is_refused(tmp_path, share):
    folder = tmp_path / "cifar-10-batches-py"
    if not folder.exists():
        cifar_pickles(tmp_path)
        (tmp_path / "whole").write_bytes((folder / "data_batch_1").read_bytes())
    whole = (tmp_path / "whole").read_bytes()
    (folder / "data_batch_1").write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataError, match="data_batch_1"):
        cifar10.load(tmp_path)


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"\x1f\x8b\x08", bytes(range(256)), b"\x80\x02}."])
def test_another_file_under_the_name_is_refused(tmp_path, content):
    (cifar_pickles(tmp_path) / "data_batch_5").write_bytes(content)
    with pytest.raises(DataError, match="data_batch_5"):
        cifar10.load(tmp_path)


@pytest.mark.parametrize("change", [lambda b: b[:-1], lambda b: b"", lambda b: b"\x0a" + b[1:]])
def test_a_damaged_binary_file_is_refused(tmp_path, change):
    path = cifar_binary(tmp_path) / "data_batch_2.bin"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(DataError, match=r"data_batch_2\.bin: expected .* found .*arml data fetch cifar10"):
        cifar10.load(tmp_path)


@pytest.mark.skipif(DATA is None, reason="set ARML_DATA to a folder with cifar-10-batches-py to read it")
def test_the_real_files_can_be_read():
    check_photographs(cifar10.load(Path(DATA)))
