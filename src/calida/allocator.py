"""Memory that a step frees stays with the process, where the C library can be told so."""

from __future__ import annotations

import ctypes
import sys

# Parameters of glibc's mallopt. Its values are ints, and older ones take 32 MB at most for the second.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
_MOST, _LEAST = 2**31 - 1, 2**25


def keep_freed_memory() -> bool:
    """Have tensors reuse memory that others freed, instead of asking the system anew; whether that could be done.

    glibc gives large blocks back when they are freed, and the system clears each page of the next ones: on a CPU that
    was a fifth of a training step of small images, and half of the time that photographs took to embed. The process may
    keep up to 2 GB that it does not use, so this is for processes that do nothing else than train and predict.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # musl has none
    if mallopt is None or not any(mallopt(_MMAP_THRESHOLD, size) for size in (_MOST, _LEAST)):
        return False
    # Only now: either ends glibc's own adjustments, and small thresholds for both would be worse than none.
    return bool(mallopt(_TRIM_THRESHOLD, _MOST))
