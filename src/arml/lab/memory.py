"""Memory that a training process has freed, kept for its next step."""

import ctypes
import sys

MMAP_MAX, TRIM_THRESHOLD = -4, -1
"""Names of two settings of glibc's ``mallopt``, as its header malloc.h numbers them."""
LARGEST = 2**31 - 1
"""Bytes: the largest number that a setting takes."""


def keep_freed_memory() -> bool:
    """Tells glibc to keep freed memory of this process for later; returns whether it did.

    Every step allocates and frees the same large tensors. By default the system gets such blocks back at once and
    clears new pages for the next ones, which can take as long as the passes themselves. Numbers do not change. The
    process holds the most that it ever needed until it ends, and other C libraries are left as they are.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(*one) == 1 for one in ((MMAP_MAX, 0), (TRIM_THRESHOLD, LARGEST)))
