"""Files that ask for too much or hold other bytes than they should: an error, in bounded memory, and no crash."""

import pickle
import resource
import struct
import subprocess
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.data.original_formats import cifar_pickles, cifar_rows, svhn_arrays, svhn_files
from scipy.io import loadmat, savemat

from arml.lab.data import DataError, cifar10, svhn
from arml.lab.data._matlab import read_matlab
from arml.lab.data._pickles import read_pickle


@contextmanager
def suppress_named_error(name):
    """Allows an error that names the file, and no other."""
    try:
        yield
    except DataError as error:
        if name not in str(error):
            raise


@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"])
@pytest.mark.parametrize("compressed", [False, True])
def test_numbers_are_read_as_scipy_reads_them(tmp_path, kind, compressed):
    rng, path = np.random.default_rng(0), tmp_path / "a.mat"
    arrays = {"X": rng.integers(0, 100, (3, 4, 2)).astype(kind), "y": rng.integers(0, 9, (5, 1)).astype(kind)}
    savemat(path, {"other": "text", **arrays}, do_compression=compressed)
    ours, theirs = read_matlab(path, ("X", "y")), loadmat(path)
    assert set(ours) == {"other", "X", "y"}
    for name in arrays:
        assert ours[name].dtype == theirs[name].dtype
        assert ours[name].shape == theirs[name].shape
        assert (ours[name] == theirs[name]).all()


def test_doubles_that_are_stored_as_bytes_are_doubles(tmp_path):
    """MATLAB writes whole doubles so. By hand: header, then flags, sizes, name and values of one variable."""
    flags, sizes = struct.pack("<4I", 6, 8, 6, 0), struct.pack("<4I", 5, 8, 3, 1)
    content = flags + sizes + struct.pack("<HHI", 1, 1, ord("y")) + struct.pack("<HH4s", 2, 3, b"\x0a\x01\x02")
    header = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM"
    path = tmp_path / "a.mat"
    path.write_bytes(header + struct.pack("<II", 14, len(content)) + content)
    y = read_matlab(path, ("y",))["y"]
    assert y.dtype == np.float64
    assert y.tolist() == [[10.0], [1.0], [2.0]] == loadmat(path)["y"].tolist()


@pytest.fixture(scope="module")
def matlab(tmp_path_factory) -> Path:
    return svhn_files(tmp_path_factory.mktemp("m") / "svhn", rows=2).parent


@settings(max_examples=60, deadline=None, database=None)
@given(data=st.data(), compressed=st.booleans())
def test_a_matlab_file_with_flipped_bits_is_read_or_refused(matlab, data, compressed):
    path = matlab / "svhn" / "train_32x32.mat"
    savemat(path, svhn_arrays(0, rows=2), do_compression=compressed)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 8))):
        # Most of the file is pixels; the interesting bytes are at its beginning.
        place = data.draw(st.one_of(st.integers(0, 300), st.integers(0, len(content) - 1)))
        content[place] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(content)
    with suppress_named_error("train_32x32.mat"):
        assert svhn.load(matlab).train.x.shape == (2, 3, 32, 32)


def test_a_few_compressed_bytes_do_not_become_gigabytes(matlab):
    path = matlab / "svhn" / "train_32x32.mat"
    header = b"MATLAB 5.0".ljust(124) + b"\x00\x01IM"
    flags, name = struct.pack("<4I", 6, 8, 9, 0), struct.pack("<HHI", 1, 1, ord("X"))
    sizes = struct.pack("<6I", 5, 16, 32, 32, 3, 3 * 10**6)
    head = flags + sizes + name + struct.pack("<II", 2, 32 * 32 * 3 * 3 * 10**6 % 2**32)
    bomb = zlib.compress(struct.pack("<II", 14, 2**31 - 1) + head + bytes(10**7))
    path.write_bytes(header + struct.pack("<II", 15, len(bomb)) + bomb)
    with pytest.raises(DataError, match=r"train_32x32\.mat: .*shape \(32, 32, 3, 3000000\)"):
        svhn.load(matlab)


HUNGRY = {
    "a place far away": b"\x80\x02]r\xff\xff\xff\x7f.",
    "a place as text": b"]p2000000000\n.",
    "a frame": b"\x80\x04\x95" + struct.pack("<Q", 2**33) + b"].",
    "a long text": b"\x80\x04\x8d" + struct.pack("<Q", 2**33) + b"x.",
    "long bytes": b"\x80\x05\x96" + struct.pack("<Q", 2**33) + b"x.",
    "a long number": b"\x80\x02\x8b" + struct.pack("<i", 2**31 - 1) + b"x.",
    "many objects": b"\x80\x02" + b"]" * 1_100_000 + b".",
}
LIMITED = """
import sys, resource
from pathlib import Path
from arml.lab.data._pickles import read_pickle
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 600 * 2**20,) * 2)
for path in sys.argv[1:]:
    try:
        read_pickle(Path(path))
    except ValueError as error:
        print(error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_small_pickle_cannot_take_gigabytes(tmp_path):
    for name, content in HUNGRY.items():
        (tmp_path / name).write_bytes(content)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    command = [sys.executable, "-c", LIMITED, *(str(tmp_path / name) for name in HUNGRY)]
    *lines, peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == len(HUNGRY), lines
    assert not any("MemoryError" in line for line in lines), lines
    assert int(peak) < max(before, 1_200_000)


def test_an_object_that_grows_when_it_is_shown_is_not_shown(tmp_path):
    nested = b"cnumpy\ndtype\n(" + b"(K\x01t" + b"2\x86" * 60 + b"tR"  # a pair of pairs of pairs ...
    array = b"cnumpy\nndarray\n)R" + b"(K\x01(K\x01t" + nested + b"\x89C\x01xtb"
    (tmp_path / "a").write_bytes(b"\x80\x03" + array + b".")
    with pytest.raises(ValueError, match="an array of another type") as caught:
        read_pickle(tmp_path / "a").pixels()
    assert len(str(caught.value)) < 500


@pytest.fixture(scope="module")
def pickles(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("p")
    (root / "whole").write_bytes((cifar_pickles(root, rows=1) / "data_batch_1").read_bytes())
    return root


@settings(max_examples=60, deadline=None, database=None)
@given(data=st.data())
def test_a_pickle_with_other_bytes_is_read_or_refused(pickles, data):
    path = pickles / "cifar-10-batches-py" / "data_batch_1"
    content = bytearray((pickles / "whole").read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.one_of(st.integers(0, 250), st.integers(0, len(content) - 1)))
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with suppress_named_error("data_batch_1"):
        assert cifar10.load(pickles).train.x.shape[1:] == (3, 32, 32)


def test_sound_pickles_pass(tmp_path):
    data, labels = cifar_rows(0)
    for protocol in (3, 4):
        (tmp_path / "a").write_bytes(pickle.dumps({"data": data, "labels": labels}, protocol=protocol))
        assert read_pickle(tmp_path / "a")["labels"] == labels
