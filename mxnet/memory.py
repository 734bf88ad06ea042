"""Keeps freed memory for the next array, instead of asking the system for fresh pages each time.

On Linux with glibc a large array's pages are returned when it dies and faulted in again for the
next one, which costs more than the arithmetic. `MXNET_KEEP_FREED_MEMORY=0` leaves glibc alone.

Python's collector rests while MXNext is imported: what is imported stays, and looking through
torch's many objects again and again would take a tenth of a second.
"""

from __future__ import annotations

import ctypes
import gc
import platform
import sys

from . import env

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
_NEVER_TRIM = 2**31 - 1
_TOP_PAD_BYTES = 64 * 1024 * 1024


def keep_freed_memory() -> bool:
    """Set glibc's allocator accordingly; return whether that was possible and wanted."""
    if not env.get("MXNET_KEEP_FREED_MEMORY"):
        return False
    if not sys.platform.startswith("linux") or platform.libc_ver()[0] != "glibc":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(
        mallopt(option, value) == 1
        for option, value in (
            (_M_MMAP_MAX, 0),
            (_M_TRIM_THRESHOLD, _NEVER_TRIM),
            (_M_TOP_PAD, _TOP_PAD_BYTES),
        )
    )


KEEPS_FREED_MEMORY = keep_freed_memory()

_collecting = gc.isenabled()
gc.disable()


def collect_again() -> None:
    """Let the collector go on as it did before the import."""
    if _collecting:
        gc.enable()
