"""Damage on disk is noticed, and large arrays are opened without reading all of them."""

import io
import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from cli.typed import arml
from hypothesis import given, settings
from hypothesis import strategies as st
from lab.data.test_cache import pictures
from PIL import Image

from arml.lab.data import DataError, cache, checksums
from arml.lab.data.cache import decode_images
from arml.lab.data.checksums import SummedWriter, Verified, verify
from arml.lab.data.fetch import check_cache


def write(path, content, piece=7):
    with path.open("wb") as file:
        writer = SummedWriter(file)
        for start in range(0, len(content), piece):
            writer.write(content[start : start + piece])
        writer.finish()
    return path


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(checksums, "BLOCK", 16)


@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 32, 100])
def test_every_block_has_its_checksum(tmp_path, small_blocks, size):
    content = bytes(range(size))
    stored = write(tmp_path / "a", content).read_bytes()
    blocks = [content[i : i + 16] for i in range(0, size, 16)]
    sums = b"".join(zlib.crc32(block).to_bytes(4, "little") for block in blocks)
    assert stored[:size] == content
    assert stored[size : size + len(sums)] == sums
    assert verify(tmp_path / "a") == Verified(len(blocks), len(blocks), ())


@settings(max_examples=40, deadline=None)
@given(place=st.integers(0, 99 + 28 + 28 - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_is_found(tmp_path_factory, place, bit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checksums, "BLOCK", 16)
        path = write(tmp_path_factory.getbasetemp() / "flipped", bytes(99))
        content = bytearray(path.read_bytes())
        content[place] ^= 1 << bit
        path.write_bytes(content)
        assert verify(path) in ((7, 7, (place // 16,)) if place < 99 else None, None)


def test_only_some_blocks_of_a_large_file_are_read_and_always_its_ends(tmp_path, small_blocks):
    path = write(tmp_path / "a", bytes(1600))
    assert verify(path, most=5) == Verified(100, 5, ())
    for place, found in ((0, (0,)), (1599, (99,)), (20, ())):
        content = bytearray(write(path, bytes(1600)).read_bytes())
        content[place] = 1
        path.write_bytes(content)
        assert verify(path, most=5).damaged == found


def damage(path, how):
    content = bytearray(path.read_bytes())
    {
        "flip": lambda: content.__setitem__(-100, content[-100] ^ 4),
        "zero page": lambda: content.__setitem__(slice(4096, 8192), bytes(4096)),
        "all zero": lambda: content.__setitem__(slice(128, None), bytes(len(content) - 128)),
        "cut": lambda: content.__delitem__(slice(-1, None)),
        "old format": lambda: content.__delitem__(slice(-32, None)),
    }[how]()
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["flip", "zero page", "all zero", "cut", "old format"])
@pytest.mark.filterwarnings("ignore:.*do not have their checksum")
def test_a_damaged_array_is_made_again(tmp_path, how):
    files = pictures(tmp_path / "a", count=9, size=(40, 40))
    before = decode_images(files, tmp_path / "cache", name="a", size=32).clone()
    (path,) = (tmp_path / "cache").glob("*.npy")
    sound = path.read_bytes()
    damage(path, how)
    assert (decode_images(files, tmp_path / "cache", name="a", size=32) == before).all()
    assert path.read_bytes() == sound


def test_damage_is_reported(tmp_path):
    files = pictures(tmp_path / "a")
    decode_images(files, tmp_path / "cache", name="a", size=32)
    (path,) = (tmp_path / "cache").glob("*.npy")
    assert "1 blocks, all sound" in check_cache(tmp_path / "cache")
    assert arml("data", "check", "--cache", "--out", str(tmp_path)).returncode == 0
    damage(path, "flip")
    answer = arml("data", "check", "--cache", "--out", str(tmp_path))
    assert answer.returncode == 1
    assert f"{path} (1 of 1 blocks)" in answer.stderr.replace("\n", "")
    with pytest.warns(UserWarning, match=r"1 of 1 blocks do not have their checksum\. The array is made again"):
        decode_images(files, tmp_path / "cache", name="a", size=32)
    damage(path, "old format")
    with pytest.raises(DataError, match=r"no checksums\)\. Remove these files"):
        check_cache(tmp_path / "cache")


def test_a_check_needs_something_to_check():
    answer = arml("data", "check")
    assert answer.returncode == 1
    assert "--cache" in answer.stderr


@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_among_images_is_named(tmp_path, kind):
    files = pictures(tmp_path / "a")
    files[2].unlink()
    {"pipe": os.mkfifo, "folder": Path.mkdir}[kind](files[2])
    with pytest.raises(DataError, match=r"002\.png: expected an image, found .*no regular file"):
        decode_images(files, tmp_path / "cache", name="a", size=2)


def test_a_huge_image_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    content = io.BytesIO()
    Image.new("1", (7500, 7500)).save(content, "PNG")
    path = tmp_path / "a.png"
    path.write_bytes(content.getvalue())
    with pytest.raises(DataError, match=r"at most 50000000 pixels, found 7500 x 7500.*ARML_MOST_PIXELS"):
        decode_images([path], tmp_path / "cache", name="a", size=2)
    monkeypatch.setenv("ARML_MOST_PIXELS", "60000000")
    assert decode_images([path], tmp_path / "cache", name="a", size=2).shape == (1, 3, 2, 2)
    monkeypatch.setenv("ARML_MOST_PIXELS", "many")
    with pytest.raises(ValueError, match=r"ARML_MOST_PIXELS should be a positive whole number\. Got 'many'"):
        decode_images([path], tmp_path / "other", name="a", size=2)


def test_a_link_in_the_place_of_an_unfinished_file_is_not_followed(tmp_path):
    files = pictures(tmp_path / "a")
    decode_images(files, tmp_path / "cache", name="a", size=3)
    (path,) = (tmp_path / "cache").glob("*.npy")
    path.unlink()
    (tmp_path / "precious").write_text("mine")
    path.with_suffix(".part").symlink_to(tmp_path / "precious")
    decode_images(files, tmp_path / "cache", name="a", size=3)
    assert (tmp_path / "precious").read_text() == "mine"
    assert not path.is_symlink()


def test_arrays_are_mapped_as_before(tmp_path):
    files = pictures(tmp_path / "a")
    decode_images(files, tmp_path / "cache", name="a", size=3)
    (path,) = (tmp_path / "cache").glob("*.npy")
    assert np.load(path).shape == np.load(path, mmap_mode="r").shape == (5, 3, 3, 3)
    assert cache.MOST_BLOCKS * checksums.BLOCK == 2**28
