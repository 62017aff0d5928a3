"""Full disks and exhausted memory: which of the two it was, where, how much is needed, and what to do."""

import errno
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_WRITER = re.compile(r"unexpected pos|PytorchStreamWriter|inline_container")
_MEMORY = re.compile(r"can't allocate memory|not enough memory|out of memory|bad_alloc|Cannot allocate memory")
_ASKED = re.compile(r"tried to allocate (\d+) bytes|allocate ([\d.]+ [KMGTP]i?B)", re.IGNORECASE)


class ShortageError(OSError):
    """The disk is full or memory is exhausted. The text says where and what to do."""


@contextmanager
def explain_shortages(folder: Path, needed: int | None = None) -> Iterator[None]:
    """Inside, errors of a full disk or of exhausted memory become a :class:`ShortageError`.

    Args:
        folder: Where files are written.
        needed: About how many bytes have to be written at once, if that is known.
    """
    try:
        yield
    except ShortageError:
        raise
    except (OSError, RuntimeError, MemoryError) as error:
        text = _describe_disk(error, folder, needed) or _describe_memory(error)
        if text is None:
            raise
        raise ShortageError(text) from error


def checkpoint_size(network: torch.nn.Module) -> int:
    """About how many bytes a checkpoint takes: the network, the best one so far, and two numbers per parameter."""
    tensors: list[torch.Tensor] = [*network.state_dict().values()]
    return 4 * sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _describe_disk(error: BaseException, folder: Path, needed: int | None) -> str | None:
    code = error.errno if isinstance(error, OSError) else None
    if code not in _FULL and not (isinstance(error, RuntimeError) and _WRITER.search(str(error))):
        return None
    size = (
        "" if needed is None else f" A checkpoint of this run takes about {show_bytes(needed)}, twice while it changes."
    )
    advice = "choose another folder with --out, then run the same command again; train needs --resume."
    limit = _file_limit()
    if limit is not None and code not in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"Files in {folder} may not be larger than {show_bytes(limit)} (`ulimit -f`).{size} Raise it, or {advice}"
        )
    if code == errno.EDQUOT:
        return f"Your share of the disk of {folder} is used up.{size} Remove files, or {advice}"
    return f"The disk of {folder} is full: {_free_space(folder)} are free.{size} Remove files, or {advice}"


def _file_limit() -> int | None:
    """The largest size that the system allows for a file, if there is such a limit."""
    try:
        import resource
    except ImportError:  # Windows has none
        return None
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _free_space(folder: Path) -> str:
    place = next((path for path in (folder, *folder.absolute().parents) if path.exists()), Path("/"))
    return show_bytes(shutil.disk_usage(place).free)


def _describe_memory(error: BaseException) -> str | None:
    if not isinstance(error, MemoryError | torch.OutOfMemoryError) and not _MEMORY.search(str(error)):
        return None
    found = _ASKED.search(str(error))
    asked = "" if found is None else f" when {show_bytes(int(found[1])) if found[1] else found[2]} more were needed"
    return (
        f"There is not enough memory: it ran out{asked}{_available_memory()}. Use smaller batches, a smaller network, "
        "smaller images or fewer --workers."
    )


def _available_memory() -> str:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return ""
    amounts = [int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    return f", and the machine has {show_bytes(1024 * amounts[0])} left" if amounts else ""


def show_bytes(count: int) -> str:
    """A number of bytes for people.

    >>> show_bytes(999), show_bytes(12_345_678), show_bytes(82_400_000_000)
    ('999 bytes', '12.3 MB', '82.4 GB')
    """
    for size, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
