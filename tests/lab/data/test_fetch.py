"""Getting data sets from a server that works, and from servers that do not."""

import hashlib
import io
import os
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pooch
import pytest
from lab.data.flaky_server import Site, serving
from lab.data.original_formats import cifar_binary, cifar_pickles, svhn_files

from arml.lab.data import DataError, _download, _registry
from arml.lab.data.fetch import Status, check, fetch, status

ARCHIVE = "cifar-10-python.tar.gz"


@pytest.fixture(autouse=True)
def _no_pauses_and_no_log(monkeypatch):
    monkeypatch.setattr(pooch.get_logger(), "disabled", True)
    monkeypatch.setattr(_download, "PAUSE", 0.0)


def expect(monkeypatch, name: str, files: dict[str, bytes]) -> None:
    """Puts the checksums of tiny files in place of the real ones."""
    dataset = _registry.REGISTRY[name]
    remotes = [r._replace(md5=hashlib.md5(files[Path(r.path).name]).hexdigest()) for r in dataset.files]
    monkeypatch.setitem(_registry.REGISTRY, name, dataset._replace(files=tuple(remotes)))


@pytest.fixture
def cifar(tmp_path, monkeypatch) -> dict[str, bytes]:
    folder, packed = cifar_pickles(tmp_path / "made", rows=20), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.add(folder, arcname="cifar-10-batches-py")
    files = {ARCHIVE: packed.getvalue()}
    expect(monkeypatch, "cifar10", files)
    return files


@pytest.fixture
def svhn(tmp_path, monkeypatch) -> dict[str, bytes]:
    files = {path.name: path.read_bytes() for path in svhn_files(tmp_path / "made_svhn").iterdir()}
    expect(monkeypatch, "svhn", files)
    return files


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "data"


def get(name: str, root: Path, site: Site) -> Status:
    with serving(site):
        return fetch(name, root, base_url=site.url + "/", progress=False)


def leftovers(root: Path) -> list[str]:
    known = ("cifar-10-batches-py", ARCHIVE, "svhn", "train_32x32.mat", "test_32x32.mat")
    inside = [path.name for path in root.rglob("*") if path.parent.name != "cifar-10-batches-py"]
    return sorted(name for name in inside if name not in known and not name.endswith(".lock"))


def test_an_archive_is_downloaded_and_unpacked(root, cifar):
    found = get("cifar10", root, Site(cifar))
    assert found == Status("cifar10", "present", str(root / "cifar-10-batches-py"), 100, 20)
    assert (root / ARCHIVE).read_bytes() == cifar[ARCHIVE]
    assert leftovers(root) == []


def test_plain_files_are_downloaded(root, svhn):
    assert get("svhn", root, Site(svhn)) == Status("svhn", "present", str(root / "svhn"), 12, 12)
    for name, content in svhn.items():
        assert (root / "svhn" / name).read_bytes() == content
    assert leftovers(root) == []


def test_what_is_there_is_not_downloaded_again(root, cifar):
    first = get("cifar10", root, Site(cifar))
    site = Site({})
    assert get("cifar10", root, site) == first
    assert site.asked == []


@pytest.mark.parametrize("write", [cifar_pickles, cifar_binary])
def test_a_reduced_copy_is_left_as_it_is(root, cifar, write):
    write(root, rows=2)
    site = Site(cifar)
    assert get("cifar10", root, site).train == 10
    assert site.asked == []


def test_a_damaged_file_is_repaired_from_the_archive_that_is_there(root, cifar):
    get("cifar10", root, Site(cifar))
    (root / "cifar-10-batches-py" / "data_batch_2").write_bytes(b"damaged")
    assert status(root)[2].state == "damaged"
    site = Site({})
    assert get("cifar10", root, site).state == "present"
    assert site.asked == []


def test_a_damaged_plain_file_is_downloaded_again_and_only_that(root, svhn):
    get("svhn", root, Site(svhn))
    (root / "svhn" / "test_32x32.mat").write_bytes(b"damaged")
    site = Site(svhn)
    assert get("svhn", root, site).state == "present"
    assert len(site.asked) == 1


def test_a_cut_connection_is_continued_where_it_stopped(root, cifar):
    site = Site(cifar, cut_after=[70_000, 1, 30_000])
    assert get("cifar10", root, site).state == "present"
    assert site.asked == ["", "bytes=70000-", "bytes=70001-", "bytes=100001-"]
    assert leftovers(root) == []


def test_many_cuts_do_not_matter_as_long_as_something_comes(root, svhn):
    site = Site(svhn, cut_after=[2_000] * 12)
    assert get("svhn", root, site).state == "present"
    assert len(site.asked) > 2 + _download.RETRIES


def test_a_download_stopped_for_good_is_continued_by_the_next_command(root, cifar):
    with pytest.raises(DataError, match=rf"stopped after 50000 bytes.*{ARCHIVE}\.part: run the same command later"):
        get("cifar10", root, Site(cifar, cut_after=[50_000] + [0] * 20))
    assert (root / f"{ARCHIVE}.part").read_bytes() == cifar[ARCHIVE][:50_000]
    assert not (root / ARCHIVE).exists()
    assert status(root)[2].state == "missing"
    site = Site(cifar)
    assert get("cifar10", root, site).state == "present"
    assert site.asked == ["bytes=50000-"]


def test_a_part_that_is_already_whole_is_taken(root, cifar):
    root.mkdir()
    (root / f"{ARCHIVE}.part").write_bytes(cifar[ARCHIVE])
    assert get("cifar10", root, Site(cifar)).state == "present"


def test_a_part_that_is_too_long_is_thrown_away(root, cifar):
    root.mkdir()
    (root / f"{ARCHIVE}.part").write_bytes(cifar[ARCHIVE] + b"more")
    site = Site(cifar)
    assert get("cifar10", root, site).state == "present"
    assert site.asked[1:] == [""]


@pytest.mark.parametrize("how", [{"ignores_range": True}, {"wrong_range": True}])
def test_a_server_that_cannot_continue_sends_everything(root, cifar, how):
    site = Site(cifar, cut_after=[50_000], **how)
    assert get("cifar10", root, site).state == "present"
    assert site.asked[:2] == ["", "bytes=50000-"]


def test_a_server_that_cannot_continue_and_always_cuts_is_given_up(root, cifar):
    site = Site(cifar, cut_after=[50_000] * 50, ignores_range=True)
    with pytest.raises(DataError, match="connection was cut after 50000 of"):
        get("cifar10", root, site)
    assert len(site.asked) == 2 + _download.RETRIES


def test_corrupted_content_is_refused_and_leaves_nothing(root, cifar):
    right = hashlib.md5(cifar[ARCHIVE]).hexdigest()
    damaged = cifar[ARCHIVE][:-10] + b"corruption"
    with pytest.raises(DataError, match=rf"(?s){ARCHIVE}.*{right}.*{hashlib.md5(damaged).hexdigest()}"):
        get("cifar10", root, Site({ARCHIVE: damaged}))
    assert [path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    assert get("cifar10", root, Site(cifar)).state == "present"


def test_a_corrupted_part_is_found_out(root, cifar):
    root.mkdir()
    (root / f"{ARCHIVE}.part").write_bytes(b"x" * 1_000)
    with pytest.raises(DataError, match=f"{ARCHIVE} is not the file it should be"):
        get("cifar10", root, Site(cifar))
    assert get("cifar10", root, Site(cifar)).state == "present"


def test_a_busy_server_is_asked_again_and_a_wrong_address_is_not(root, cifar):
    site = Site(cifar, errors=[503, 429])
    assert get("cifar10", root, site).state == "present"
    nothing = Site({})
    with pytest.raises(DataError, match=r"cifar-10-python\.tar\.gz: the server answered 404 .*by hand"):
        get("cifar10", root / "other", nothing)
    assert len(nothing.asked) == 1


def test_no_server_at_all_is_an_error_that_says_so(root, cifar):
    with serving(Site({})) as site:
        pass
    with pytest.raises(DataError, match="download stopped after 0 bytes"):
        fetch("cifar10", root, base_url=site.url, progress=False)


def test_an_archive_that_leads_out_of_the_folder_is_refused(root, monkeypatch):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../escaped"), io.BytesIO())
    expect(monkeypatch, "cifar10", {ARCHIVE: packed.getvalue()})
    with pytest.raises(DataError, match=rf"{ARCHIVE}: expected an archive of cifar-10-batches-py"):
        get("cifar10", root, Site({ARCHIVE: packed.getvalue()}))
    assert not (root / "escaped").exists()
    assert not (root.parent / "escaped").exists()


@pytest.mark.parametrize("content", [b"no archive", b""])
def test_a_file_that_is_no_archive_is_refused(root, monkeypatch, content):
    expect(monkeypatch, "cifar10", {ARCHIVE: content})
    with pytest.raises(DataError, match="expected an archive"):
        get("cifar10", root, Site({ARCHIVE: content}))


def test_a_file_that_is_far_too_large_is_not_downloaded(root, cifar, monkeypatch):
    monkeypatch.setattr(_download, "MOST_BYTES", 1000)
    with pytest.raises(DataError, match=rf"{ARCHIVE}: the server sends \d+ bytes or more, .*more than 1000"):
        get("cifar10", root, Site(cifar))
    assert leftovers(root) == []


def test_a_download_ends_after_a_while(root, cifar, monkeypatch):
    monkeypatch.setattr(_download, "MOST_SECONDS", -1)
    with pytest.raises(DataError, match=r"took more than -1 seconds\. What came so far is kept"):
        get("cifar10", root, Site(cifar))


def test_a_link_in_the_place_of_a_part_is_not_followed(root, cifar):
    root.mkdir()
    (root / "precious").write_text("mine")
    (root / f"{ARCHIVE}.part").symlink_to(root / "precious")
    assert get("cifar10", root, Site(cifar)).state == "present"
    assert (root / "precious").read_text() == "mine"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_something_endless_in_the_place_of_a_file_is_refused(root, svhn, make):
    (root / "svhn").mkdir(parents=True)
    make(root / "svhn" / "train_32x32.mat")
    with pytest.raises(DataError, match=r"train_32x32\.mat: expected a file, found a folder, a pipe or a device"):
        get("svhn", root, Site(svhn))


def test_an_archive_that_is_a_pipe_is_not_read_for_its_checksum(root, cifar):
    cifar_pickles(root, rows=20)
    os.mkfifo(root / ARCHIVE)
    assert "original" not in check("cifar10", root)


def test_other_addresses_than_those_of_the_web_are_refused(root, cifar):
    with pytest.raises(DataError, match=r"begin with http:// or https:// only"):
        fetch("cifar10", root, base_url="file:///etc", progress=False)


def test_two_commands_at_once_download_once(root, cifar):
    with serving(Site(cifar)) as site, ThreadPoolExecutor(2) as pool:
        both = [pool.submit(fetch, "cifar10", root, site.url, False) for _ in range(2)]
        assert {one.result().state for one in both} == {"present"}
    assert site.asked == [""]


def test_a_bar_is_shown_on_demand(root, svhn, capsys):
    with serving(Site(svhn)) as site:
        fetch("svhn", root, base_url=site.url)
    shown = capsys.readouterr()
    assert "train_32x32.mat" in shown.err
    assert shown.out == ""


def test_the_status_of_an_empty_folder(root):
    rows = status(root)
    assert [(row.name, row.state, row.train) for row in rows] == [
        ("digits", "embedded", 1437),
        ("mnist5k", "embedded", 4000),
        ("cifar10", "missing", None),
        ("svhn", "missing", None),
        ("yeast", "embedded", 2417),
        ("celeba", "missing", None),
        ("pacs", "missing", None),
    ]
    assert "arml data fetch svhn" in rows[3].note


def test_embedded_data_need_no_download(root):
    assert fetch("digits", root).state == "embedded"
    assert not root.exists()


def test_a_report_says_what_was_read_and_whether_it_is_the_original(root, cifar, svhn):
    get("cifar10", root, Site(cifar))
    assert "train: 100 images of 3 x 32 x 32" in check("cifar10", root)
    assert f"{ARCHIVE}: the original file (md5" in check("cifar10", root)
    svhn_files(root / "svhn", rows=20)
    assert "test: 20 images of 3 x 32 x 32, 2 per class" in check("svhn", root)
    assert "train_32x32.mat: not the original file (md5" in check("svhn", root)


def test_a_report_on_damaged_data_is_an_error(root):
    (cifar_pickles(root) / "data_batch_2").unlink()
    with pytest.raises(DataError, match="data_batch_2"):
        check("cifar10", root)


@pytest.mark.parametrize("act", [check, fetch])
def test_an_unknown_name_is_answered_with_the_known_ones(root, act):
    with pytest.raises(DataError, match=r"Unknown data set 'cifar'\. Known: digits, mnist5k, cifar10, svhn"):
        act("cifar", root)
