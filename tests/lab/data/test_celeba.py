"""CelebA in all its layouts, sound and not."""

import os
from pathlib import Path

import pytest
import torch
from lab.data.original_formats import CELEBA_NAMES, celeba_attributes, celeba_files
from PIL import Image

from arml.lab.data import DataError, celeba

DATA = os.environ.get("ARML_DATA")


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "data"


@pytest.mark.parametrize("size", [(178, 218), (89, 109)])
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("below", ["celeba", "CelebA", "."])
def test_every_layout_and_size_is_read_alike(root, tmp_path, below, nested, size):
    celeba_files(root / below, size=size, nested=nested)
    examples = celeba.load(root, tmp_path / "cache", size=8)
    assert examples.name == "celeba"
    assert [part.tolist() for part in examples.rows] == [[0, 3], [1, 4], [2, 5]]
    assert list(examples.targets) == CELEBA_NAMES
    for k, target in enumerate(examples.targets.values()):
        assert target.classes == ("no", "yes")
        assert target.values.tolist() == celeba_attributes(6)[:, k].tolist()
        assert target.values.dtype == torch.float32
    images = examples.inputs(examples.rows.train)
    assert images.shape == (6, 3, 8, 8)
    expected = torch.tensor([[10 * i, 100, 200] for i in range(6)]).reshape(6, 3, 1, 1)
    assert int((images.int() - expected).abs().max()) <= 3, "JPEG is not exact; white from the edge would be far off"


def test_the_square_is_cut_from_the_centre(root, tmp_path):
    celeba_files(root)
    image = Image.new("RGB", (178, 218))
    image.paste((255, 255, 255), (0, 20, 178, 198))
    image.save(root / "img_align_celeba" / "000002.jpg", quality=95)
    images = celeba.load(root, tmp_path / "cache", size=178).inputs(torch.tensor([0]))
    assert int(images[1].min()) > 200


def test_the_folder_named_celeba_comes_first(root):
    celeba_files(root, rows=3)
    celeba_files(root / "celeba", rows=6)
    assert len(celeba.lists(root).files) == 6


def test_only_what_the_attribute_file_lists_counts(root):
    folder = celeba_files(root / "celeba")
    edit(folder / "list_eval_partition.txt", lambda lines: [*lines, "000777.jpg 1"])
    (folder / "img_align_celeba" / "000888.jpg").write_bytes(b"not listed")
    assert [path.name for path in celeba.lists(root).files] == [f"00000{i}.jpg" for i in range(1, 7)]


def test_sizes_do_not_take_each_others_images_away(root, tmp_path):
    celeba_files(root)
    for size in (4, 8):
        celeba.load(root, tmp_path / "cache", size=size)
    seen = []
    celeba.load(root, tmp_path / "cache", size=4, progress=lambda *at: seen.append(at))
    assert seen == []


def edit(path: Path, change) -> None:
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")


def changed(number: int, change):
    return lambda lines: [change(line) if i == number else line for i, line in enumerate(lines, start=1)]


ATTRIBUTES = {
    "empty": (lambda lines: [], r"a number of images in line 1 .*found '' and 0 names"),
    "no count": (lambda lines: lines[1:], r"a number of images in line 1"),
    "39 names": (changed(2, lambda line: line[12:]), "40 different names in line 2, found '6' and 39 names"),
    "a name twice": (changed(2, lambda line: line.replace("_0", "_1", 1)), "40 names, 39 of them different"),
    "short line": (changed(5, lambda line: line[:-3]), r"found line 5: 000003\.jpg .*\(40 words\)"),
    "long line": (changed(5, lambda line: line + " 1"), r"found line 5: 000003\.jpg .*\(42 words\)"),
    "other value": (changed(4, lambda line: line[:-2] + " 0"), r"40 times -1 or 1, found line 4: 000002\.jpg"),
    "too few": (lambda lines: lines[:-1], "6 images, as line 1 says, and at least one, found 5"),
    "too many": (changed(1, lambda line: "5"), "5 images, as line 1 says, and at least one, found 6"),
    "none": (lambda lines: ["0", lines[1]], "found 0"),
    "twice": (changed(4, lambda line: line.replace("02", "01")), r"a new image .*found line 4: 000001\.jpg"),
    "gap": (changed(4, lambda line: ""), "found an empty line 4"),
    "not on disk": (changed(4, lambda line: line.replace("02", "99")), "found line 4: 000099.jpg"),
}


@pytest.mark.parametrize("case", ATTRIBUTES)
def test_a_wrong_attribute_file_is_answered_with_the_line(root, case):
    change, message = ATTRIBUTES[case]
    edit(celeba_files(root / "celeba") / "list_attr_celeba.txt", change)
    with pytest.raises(DataError, match=rf"list_attr_celeba\.txt: expected .*{message}.*arml data fetch celeba"):
        celeba.lists(root)


PARTITION = {
    "other part": (changed(3, lambda line: "000003.jpg 3"), r"found line 3: 000003\.jpg 3"),
    "no part": (changed(3, lambda line: "000003.jpg"), r"found line 3: 000003\.jpg"),
    "twice": (lambda lines: [*lines, "000001.jpg 2"], r"found line 7: 000001\.jpg 2"),
    "no test images": (lambda lines: [line.replace(" 2", " 0") for line in lines], "found 4 for train.* 0 for test"),
}


@pytest.mark.parametrize("case", PARTITION)
def test_a_wrong_partition_file_is_answered_with_the_line(root, case):
    change, message = PARTITION[case]
    edit(celeba_files(root / "celeba") / "list_eval_partition.txt", change)
    with pytest.raises(DataError, match=rf"list_eval_partition\.txt: expected .*{message}.*arml data fetch celeba"):
        celeba.lists(root)


def test_an_image_that_is_in_no_part_is_named(root):
    edit(celeba_files(root / "celeba") / "list_eval_partition.txt", lambda lines: lines[:-1])
    with pytest.raises(DataError, match=r"list_attr_celeba\.txt: expected only images that list_eval.*line 8: 000006"):
        celeba.lists(root)


def test_an_image_that_is_missing_is_named(root):
    (celeba_files(root / "celeba") / "img_align_celeba" / "000004.jpg").unlink()
    with pytest.raises(DataError, match=r"expected only images that are in .*img_align_celeba, found line 6: 000004"):
        celeba.lists(root)


@pytest.mark.parametrize("name", ["list_attr_celeba.txt", "list_eval_partition.txt", "img_align_celeba"])
def test_a_missing_file_or_folder_is_named(root, name):
    folder = celeba_files(root / "celeba")
    (folder / name).rename(folder / "elsewhere")
    with pytest.raises(DataError, match=rf"celeba.{name}: expected .*, found no such f"):
        celeba.lists(root)


def test_a_file_that_is_no_text_is_refused(root):
    (celeba_files(root / "celeba") / "list_attr_celeba.txt").write_bytes(b"\xff\xfe\x00\x01" * 50)
    with pytest.raises(DataError, match=r"list_attr_celeba\.txt: expected .*found something else"):
        celeba.lists(root)


def test_a_damaged_image_is_named(root, tmp_path):
    (celeba_files(root / "celeba") / "img_align_celeba" / "000004.jpg").write_bytes(b"damaged")
    with pytest.raises(DataError, match=r"000004\.jpg: expected an image"):
        celeba.load(root, tmp_path / "cache")


@pytest.mark.skipif(
    DATA is None or not (Path(DATA) / "celeba").exists(), reason="set ARML_DATA to a folder with celeba to read it"
)
def test_the_real_files_can_be_read(tmp_path):
    examples = celeba.load(Path(DATA), tmp_path, size=32)
    x = examples.inputs(examples.rows.train)
    assert x.shape == (sum(map(len, examples.rows)), 3, 32, 32)
    assert next(iter(examples.targets)) == "5_o_Clock_Shadow"
    assert all(0.01 < float(target.values.mean()) < 0.9 for target in examples.targets.values())
    # A face is brighter in the middle than most hair and background are in the corners of the image.
    mean = x[:500].float().mean(dim=(0, 1))
    assert float(mean[12:20, 12:20].mean()) > float(mean[:4, :].mean())
    # Women in lipstick: the two lists belong together.
    both = torch.stack([examples.targets[name].values for name in ("Male", "Wearing_Lipstick")])
    assert float(torch.corrcoef(both)[0, 1]) < -0.6
