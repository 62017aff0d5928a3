"""Lists, downloads and checks data sets by name."""

import tarfile
import tempfile
import zlib
from pathlib import Path
from typing import Literal, NamedTuple

from filelock import FileLock

from arml.lab.data._download import Resumable
from arml.lab.data._registry import REGISTRY, Remote, find_dataset
from arml.lab.data.base import DataError
from arml.lab.data.checksums import verify


class Status(NamedTuple):
    """Whether one data set can be read, and from where."""

    name: str
    state: Literal["embedded", "present", "missing", "damaged"]
    where: str
    """A folder, or the package that the data set is embedded in."""
    train: int | None = None
    """Number of training examples, if they can be read; all examples if there is no test part."""
    test: int | None = None
    """Number of test examples, if they can be read."""
    note: str = ""
    """What is wrong and what to do about it; empty if nothing is wrong."""


def status(root: Path) -> list[Status]:
    """The status of every data set, found by reading it."""
    return [_status(name, root) for name in REGISTRY]


def fetch(name: str, root: Path, base_url: str | None = None, progress: bool = True) -> Status:
    """Downloads a data set into ``root``, unless it can already be read from there.

    An interrupted download continues where it stopped. Nothing appears under its final name before its checksum is
    right. A reduced copy that can be read is left as it is. For a data set that people have to get by hand, a
    :class:`DataError` says how.

    Args:
        name: One of the names in :func:`status`.
        root: The data folder, created if necessary.
        base_url: Replaces everything before the last part of the files' addresses.
        progress: Whether to show a progress bar.
    """
    before, dataset = _status(name, root), find_dataset(name)
    if before.state in ("embedded", "present"):
        return before
    if dataset.by_hand:
        raise DataError(f"{dataset.by_hand} The data folder is {root}.")
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / f".{name}.lock"):  # another command may be at it: wait, and take what it has fetched
        after = _status(name, root)
        if after.state == "present":
            return after
        for remote in dataset.files:
            _download(name, remote, root, base_url, progress)
            if remote.unpacks_to:
                _unpack(root / remote.path, remote.unpacks_to, root)
        after = _status(name, root)
    if after.state != "present":
        raise DataError(f"{name} was downloaded to {root} but cannot be read. {after.note}")
    return after


def check(name: str, root: Path) -> str:
    """Reads all of a data set and describes it; raises a :class:`DataError` if it cannot be read.

    Downloaded files are compared with their checksums. A difference is reported but is not an error: reduced copies
    are welcome.

    >>> print(check("digits", Path("data")))
    digits: can be read from scikit-learn
      train: 1437 images of 1 x 8 x 8, 138 to 147 per class
      test: 360 images of 1 x 8 x 8, 36 per class
    """
    dataset = find_dataset(name)
    contents = dataset.read(root)
    lines = [f"{name}: can be read from {dataset.where(root)}", *contents.lines]
    paths = {root / remote.path: remote.md5 for remote in dataset.files}
    lines += [_compare_checksum(path, md5) for path, md5 in paths.items() if path.is_file()]
    return "\n  ".join(lines)


def check_cache(folder: Path) -> str:
    """Reads all decoded images in ``folder`` and compares every block with its checksum.

    Raises a :class:`DataError` that names the damaged files.
    """
    found = {path: verify(path) for path in sorted(folder.glob("*.npy"))}
    lines = [f"{folder}: {len(found)} arrays of images, made by earlier runs"]
    lines += [f"{path.name}: {one.blocks} blocks, all sound" for path, one in found.items() if one and not one.damaged]
    broken = [
        f"{path} ({'no checksums' if one is None else f'{len(one.damaged)} of {one.blocks} blocks'})"
        for path, one in found.items()
        if one is None or one.damaged
    ]
    if broken:
        raise DataError(f"Damaged: {', '.join(broken)}. Remove these files; the next run makes them again.")
    return "\n  ".join(lines)


def _status(name: str, root: Path) -> Status:
    dataset = find_dataset(name)
    where = dataset.where(root)
    try:
        contents = dataset.read(root)
    except DataError as error:
        return Status(name, "damaged" if _holds_files(where) else "missing", str(where), note=str(error))
    state: Literal["embedded", "present"] = "embedded" if dataset.is_embedded else "present"
    return Status(name, state, str(where), contents.train, contents.test)


def _holds_files(folder: Path) -> bool:
    return folder.is_dir() and any(
        path.is_file() and path.suffix not in (".part", ".lock") for path in folder.rglob("*")
    )


def _download(name: str, remote: Remote, root: Path, base_url: str | None, progress: bool) -> None:
    import pooch  # type: ignore[import-untyped, unused-ignore]

    target = root / remote.path
    if target.exists() and not target.is_file():  # pooch would read a pipe or a device for ever
        raise DataError(
            f"{target}: expected a file, found a folder, a pipe or a device. Remove it, then run `arml data fetch "
            f"{name}` again."
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    file = remote.url.rsplit("/", 1)[1]
    url = remote.url if base_url is None else f"{base_url.rstrip('/')}/{file}"
    downloader = Resumable(target.with_name(target.name + ".part"), progress)
    try:
        pooch.retrieve(url, f"md5:{remote.md5}", target.name, target.parent, downloader=downloader)
    except DataError:
        raise
    except ValueError as error:  # pooch's answer to a wrong checksum; it has deleted the download
        raise DataError(
            f"{url} is not the file it should be: {error} Run `arml data fetch {name}` once more; if this happens "
            "again, the server holds another file: use another one with base_url."
        ) from error


def _unpack(archive: Path, folder: str, root: Path) -> None:
    """Moves the files of ``folder`` in the archive to ``root/folder``, each of them completely or not at all."""
    try:
        with tempfile.TemporaryDirectory(dir=root, prefix=".unpacking-") as place, tarfile.open(archive) as tar:
            tar.extractall(place, filter="data")  # refuses members that lead out of the folder
            (root / folder).mkdir(exist_ok=True)
            for path in sorted((Path(place) / folder).iterdir()):
                path.replace(root / folder / path.name)
    except (tarfile.TarError, EOFError, zlib.error, FileNotFoundError) as error:
        raise DataError(f"{archive}: expected an archive of {folder}, found something else ({error}).") from error


def _compare_checksum(path: Path, md5: str) -> str:
    import pooch  # type: ignore[import-untyped, unused-ignore]

    found = pooch.file_hash(str(path), alg="md5")
    if found == md5:
        return f"{path.name}: the original file (md5 {md5})"
    return f"{path.name}: not the original file (md5 {found}, original {md5})"
