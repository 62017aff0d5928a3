"""Decoded images: right pixels, made once, and never half of them."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import numpy as np
import pytest
import torch
from PIL import Image
from torch.testing import assert_close

from arml.lab.data import DataError, cache
from arml.lab.data.cache import decode_images


def pictures(folder: Path, count: int = 5, size: tuple[int, int] = (6, 4), form: str = "png") -> list[Path]:
    """Picture i has the red value i in every pixel."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{i:03}.{form}" for i in range(count)]
    for i, path in enumerate(files):
        Image.new("RGB", size, (i, 7, 9)).save(path)
    return files


@pytest.fixture
def kept(tmp_path) -> Path:
    return tmp_path / "cache"


def arrays(kept: Path) -> list[str]:
    return sorted(path.name for path in kept.iterdir() if path.suffix != ".lock")


def test_every_picture_is_in_its_row(tmp_path, kept, monkeypatch):
    monkeypatch.setattr(cache, "CHUNK", 2)
    seen = []
    images = decode_images(pictures(tmp_path / "a"), kept, name="a", size=2, progress=lambda *at: seen.append(at))
    assert images.shape == (5, 3, 2, 2)
    assert images.dtype == torch.uint8
    assert images[:, :, 0, 0].tolist() == [[i, 7, 9] for i in range(5)]
    assert seen == [(2, 5), (4, 5), (5, 5)]


@pytest.mark.parametrize(("crop", "columns"), [(None, [1, 2, 3, 4]), (9, [1, 2, 3, 4]), (2, [2, 3])])
def test_the_centre_is_cut_out(tmp_path, kept, crop, columns):
    # Six columns and four rows; the red value is the column, the green one the row.
    pixels = np.zeros((4, 6, 3), dtype=np.uint8)
    pixels[..., 0], pixels[..., 1] = np.arange(6), np.arange(4)[:, None]
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = decode_images([tmp_path / "a.png"], kept, name="a", size=len(columns), crop=crop)[0]
    assert image[0].tolist() == [columns] * len(columns)
    assert image[1, :, 0].tolist() == [row - 1 for row in columns]


def test_a_smaller_picture_is_an_average(tmp_path, kept):
    pixels = np.zeros((8, 8, 3), dtype=np.uint8)
    pixels[:, ::2] = 200  # stripes, of which a filter that skips pixels would see one colour only
    Image.fromarray(pixels).save(tmp_path / "a.png")
    image = decode_images([tmp_path / "a.png"], kept, name="a", size=2)[0].float()
    assert float((image - 100).abs().max()) < 10


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "1"])
def test_other_kinds_of_pictures_become_rgb(tmp_path, kept, mode):
    Image.new("RGB", (4, 4), (255, 255, 255)).convert(mode).save(tmp_path / "a.png")
    assert decode_images([tmp_path / "a.png"], kept, name="a", size=4)[0].unique().tolist() == [255]


def test_later_calls_use_the_file_and_cannot_change_it(tmp_path, kept, monkeypatch):
    files = pictures(tmp_path / "a")
    first = decode_images(files, kept, name="a", size=2)
    before = first.clone()
    first.zero_()
    monkeypatch.setattr(cache, "_centre", None)
    assert_close(decode_images(files, kept, name="a", size=2), before)
    (tmp_path / "a").rename(tmp_path / "moved")
    assert_close(decode_images([tmp_path / "moved" / path.name for path in files], kept, name="a", size=2), before)


def replaced(files: list[Path]) -> list[Path]:
    Image.new("RGB", (6, 4), (99, 7, 9)).save(files[0])
    return files


def touched(files: list[Path]) -> list[Path]:
    os.utime(files[0], ns=(1, 1))
    return files


def renamed(files: list[Path]) -> list[Path]:
    return [files[0].rename(files[0].with_name("x.png")), *files[1:]]


@pytest.mark.parametrize("change", [replaced, touched, renamed, lambda files: files[::-1], lambda files: files[:-1]])
def test_other_sources_are_decoded_again_and_the_old_array_goes(tmp_path, kept, change):
    files = pictures(tmp_path / "a")
    decode_images(files, kept, name="a", size=2)
    decode_images(files, kept, name="a-x", size=2)
    old = [name for name in arrays(kept) if not name.startswith("a-x")]
    (kept / "a-0123456789abcdef.part").write_bytes(b"left by a killed process")
    files = change(files)
    images = decode_images(files, kept, name="a", size=2)
    assert images[:, 0, 0, 0].tolist() == [Image.open(path).getpixel((3, 2))[0] for path in files]
    new = [name for name in arrays(kept) if not name.startswith("a-x")]
    assert len(new) == 1
    assert new != old
    assert len(arrays(kept)) == 2, "an array of another name has gone"


def test_another_size_or_crop_is_another_array(tmp_path, kept):
    files = pictures(tmp_path / "a")
    found = set()
    for size, crop in [(2, None), (3, None), (2, 2)]:
        assert decode_images(files, kept, name="a", size=size, crop=crop).shape[-1] == size
        found |= set(arrays(kept))
    assert len(found) == 3
    assert len(arrays(kept)) == 1


def test_the_old_array_stays_until_the_new_one_is_whole(tmp_path, kept):
    files = pictures(tmp_path / "a")
    before = decode_images(files, kept, name="a", size=2).clone()
    good = files[3].read_bytes()
    times = files[3].stat()
    files[3].write_bytes(good[: len(good) // 2])
    with pytest.raises(DataError):
        decode_images(files, kept, name="a", size=2)
    assert len(arrays(kept)) == 1, "something half-written is left"
    files[3].write_bytes(good)
    os.utime(files[3], ns=(times.st_atime_ns, times.st_mtime_ns))
    assert_close(decode_images(files, kept, name="a", size=2), before)


@pytest.mark.parametrize("content", [b"", b"<html>", None, "cut", "flipped"])
@pytest.mark.parametrize("form", ["png", "jpg"])
def test_a_damaged_picture_is_named(tmp_path, kept, content, form):
    files = pictures(tmp_path / "a", size=(64, 64), form=form)
    whole = files[3].read_bytes()
    if content == "flipped":
        content = bytes(20) + whole[20:]
    files[3].write_bytes(whole[: len(whole) // 2] if content == "cut" else content or b"")
    if content is None:
        files[3].unlink()
    with pytest.raises(DataError, match=rf"003\.{form}: expected an image, found .*Get this file again"):
        decode_images(files, kept, name="a", size=2)
    assert arrays(kept) == []


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut_in_the_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def another_array(path: Path) -> None:
    np.save(path, np.zeros((5, 3, 4, 1), dtype=np.uint8))


def another_type(path: Path) -> None:
    np.save(path, np.zeros((5, 3, 2, 2)))


@pytest.mark.parametrize("damage", [shortened, emptied, cut_in_the_header, another_array, another_type])
def test_a_damaged_array_is_made_again(tmp_path, kept, damage):
    files = pictures(tmp_path / "a")
    before = decode_images(files, kept, name="a", size=2).clone()
    damage(kept / arrays(kept)[0])
    assert_close(decode_images(files, kept, name="a", size=2), before)


def test_wrong_arguments_are_refused(tmp_path, kept):
    with pytest.raises(DataError, match="a: expected at least one image file"):
        decode_images([], kept, name="a", size=2)
    with pytest.raises(ValueError, match=r"at least 1\. Got size 0, crop None"):
        decode_images(pictures(tmp_path / "a"), kept, name="a", size=0)
    with pytest.raises(ValueError, match=r"at least 1\. Got size 2, crop 0"):
        decode_images(pictures(tmp_path / "a"), kept, name="a", size=2, crop=0)


def test_a_second_reader_waits_and_uses_the_work_of_the_first(tmp_path, kept, monkeypatch):
    monkeypatch.setattr(cache, "CHUNK", 1)
    files, seen = pictures(tmp_path / "a", count=8), []
    begun, go_on = Event(), Event()

    def pause(done, total):
        begun.set()
        assert go_on.wait(60)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(decode_images, files, kept, name="a", size=2, progress=pause)
        assert begun.wait(60)
        assert [name.rsplit(".", 1)[1] for name in arrays(kept)] == ["part"]
        second = pool.submit(decode_images, files, kept, name="a", size=2, progress=lambda *at: seen.append(at))
        with pytest.raises(TimeoutError):
            second.result(timeout=0.3)
        go_on.set()
        assert_close(second.result(), first.result())
    assert seen == []
    assert second.result()[:, 0, 0, 0].tolist() == list(range(8))
    assert [name.rsplit(".", 1)[1] for name in arrays(kept)] == ["npy"]


def test_the_part_and_the_lock_that_a_killed_process_left_do_no_harm(tmp_path, kept):
    files = pictures(tmp_path / "a")
    before = decode_images(files, kept, name="a", size=2).clone()
    (array,) = kept.glob("*.npy")
    array.rename(array.with_suffix(".part")).write_bytes(b"half")
    (kept / "a.lock").touch()
    assert_close(decode_images(files, kept, name="a", size=2), before)
    assert [name.rsplit(".", 1)[1] for name in arrays(kept)] == ["npy"]


BUILD = """
import sys, time
from pathlib import Path
from arml.lab.data import cache
cache.CHUNK = 1
def slowly(done, total):
    print(done, flush=True)
    time.sleep(float(sys.argv[3]))
images = cache.decode_images(sorted(Path(sys.argv[1]).iterdir()), Path(sys.argv[2]), name="a", size=2, progress=slowly)
print("red", *images[:, 0, 0, 0].tolist(), flush=True)
"""


def building(files: list[Path], kept: Path, pause: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", BUILD, str(files[0].parent), str(kept), str(pause)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_second_process_waits_and_uses_the_work_of_the_first(tmp_path, kept):
    files, seen = pictures(tmp_path / "a", count=8), []
    with building(files, kept, pause=0.1) as first:
        assert first.stdout.readline() == "1\n"
        assert [name.rsplit(".", 1)[1] for name in arrays(kept)] == ["part"]
        images = decode_images(files, kept, name="a", size=2, progress=lambda *at: seen.append(at))
        assert first.stdout.read().split("\n") == [*map(str, range(2, 9)), "red 0 1 2 3 4 5 6 7", ""]
    assert seen == []
    assert images[:, 0, 0, 0].tolist() == list(range(8))
    assert [name.rsplit(".", 1)[1] for name in arrays(kept)] == ["npy"]


@pytest.mark.slow
def test_a_killed_process_leaves_nothing_that_is_taken_for_whole(tmp_path, kept):
    files = pictures(tmp_path / "a", count=8)
    process = building(files, kept, pause=0.5)
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert [name.rsplit(".", 1)[1] for name in arrays(kept)] == ["part"]
    started = time.monotonic()
    assert decode_images(files, kept, name="a", size=2)[:, 0, 0, 0].tolist() == list(range(8))
    assert time.monotonic() - started < 5, "the killed process still holds the lock"
    assert [name.rsplit(".", 1)[1] for name in arrays(kept)] == ["npy"]
