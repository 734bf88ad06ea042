"""Reuse freed memory for the next array, instead of requesting new pages each time.

On Linux with glibc a large array's pages are returned when it dies and faulted in again for the
next one, which costs more than the arithmetic. `MXNET_KEEP_FREED_MEMORY=0` leaves glibc alone.
Gaps between arrays are returned after the first training step and then from time to time: memory
does not grow while shapes change. Programs that recompute results to save memory map their largest
arrays (`map_large_arrays`).

`expose` and `is_exposed` track memory that others can write.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import mmap
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..error import reporting_memory
from . import env

if TYPE_CHECKING:
    import torch

_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -2, -3, -4
_NEVER_TRIM = 2**31 - 1
_TOP_PAD_BYTES = 64 * 1024 * 1024
_LEAST_MAPPED = 1 << 20  # bytes
# Bytes from which arrays are mapped in programs that save memory; fewer than the first never.
_LEAST_MAPPED_TO_SAVE, _MAPPED_TO_SAVE = 1 << 18, 5 << 20
_MOST_MAPPED = 1 << 16  # arrays at a time; glibc's own setting


def keep_freed_memory() -> bool:
    """Configure glibc's allocator; return False if that is impossible or switched off."""
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


@contextlib.contextmanager
def pause_collection() -> Iterator[None]:
    """Pause garbage collection inside a block that creates many long-lived objects.

    They are then in the oldest generation, which only full collections scan.

    >>> with pause_collection():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Else objects that the user, or Python 3.12 itself, froze would become ordinary.
        if not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if was_enabled:
            gc.enable()


KEEPS_FREED_MEMORY = keep_freed_memory()

_largest_seen = 0


def map_large_arrays(largest: int) -> None:
    """Map separate pages for large arrays that fit no gap; they are returned with the array.

    glibc asks for 96 bytes more than an aligned array takes, so that the gap of a freed array is
    too small for the next one of its size if a small object lies beside it: 200 equal layers of
    which 20 are kept at a time would need the memory of all. To touch new pages takes time, so this
    is for programs that trade time for memory; `largest` is the bytes of their largest array, and
    the largest of all calls decides what is large.
    """
    global _largest_seen
    if largest <= _largest_seen:
        return
    _largest_seen = largest
    threshold = min(largest * 3 // 5, _MAPPED_TO_SAVE)
    if KEEPS_FREED_MEMORY and threshold >= _LEAST_MAPPED_TO_SAVE:
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_M_MMAP_MAX, _MOST_MAPPED)
        mallopt(_M_MMAP_THRESHOLD, threshold)


def return_freed_memory() -> None:
    """Return unused memory to the system, if the allocator supports it.

    >>> mx._process.memory.return_freed_memory()
    """
    gc.collect()
    if sys.platform.startswith("linux") and platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


class _MallocState(ctypes.Structure):
    """glibc's memory statistics (`struct mallinfo2`)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks"),
            *("uordblks", "fordblks", "keepcost"),
        )
    ]


def malloc_state() -> _MallocState:
    """Return glibc's memory statistics; AttributeError before glibc 2.33."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _MallocState
    return libc.mallinfo2()


class GapReturning:
    """Returns gaps in memory to the system between training steps, at a limited rate.

    What the first step leaves for good (compiled kernels, states of optimizers) lies between its
    arrays. The arrays of later steps fit the gaps otherwise and would touch pages beyond them.
    """

    def __init__(self, least: int = 32 << 20, rate: float = 12 << 20, pause: float = 10.0) -> None:
        self._least, self._rate, self._pause = least, rate, pause
        self._next = 0.0 if KEEPS_FREED_MEMORY else math.inf

    def step(self) -> None:
        """Count a training step; return large gaps if the rate allows it.

        To touch a gigabyte of pages again takes about a quarter of a second. At `rate` bytes a
        second, gaps are returned so seldom that this is 0.3 % of the time.
        """
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._pause
        with contextlib.suppress(AttributeError):  # a glibc before 2.33
            if malloc_state().fordblks >= self._least:
                before = _process_memory()[0]
                ctypes.CDLL(None).malloc_trim(0)
                returned = before - _process_memory()[0]  # most gaps may be returned already
                self._next = now + max(self._pause, returned / self._rate)


return_gaps = GapReturning().step


def untouched_zeros(
    shape: Sequence[int], dtype: torch.dtype, device: torch.device | None = None
) -> torch.Tensor:
    """Return zeros; in main memory, pages are allocated on first touch.

    For arrays that live long, and that may be written over as a whole or never be used, such as
    gradients of a network that only predicts. Small ones are ordinary.

    >>> import torch
    >>> untouched_zeros((512, 512), torch.float32).sum()
    tensor(0.)
    """
    import torch

    count = math.prod(shape)
    size = count * dtype.itemsize
    pages, is_cpu = None, device is None or device.type == "cpu"
    if is_cpu and size >= _LEAST_MAPPED and hasattr(mmap, "MAP_ANONYMOUS"):
        with contextlib.suppress(OSError, OverflowError):  # torch says how much is missing
            pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if pages is None:
        with reporting_memory(f"an array of shape {tuple(shape)}"):
            return torch.zeros(shape, dtype=dtype, device=device)
    # `data`: a view would keep the flat tensor, and the memory would have two owners.
    return torch.frombuffer(pages, dtype=dtype, count=count).reshape(shape).data


def expose(tensor: torch.Tensor) -> None:
    """Mark the storage of a tensor as one that can be written without torch noticing.

    Call this where memory is shared with NumPy, DLPack, other processes, other frameworks or code
    of users. The mark lasts as long as the storage. Values prepared from it, such as packed
    weights, are then prepared again for each use. Torch's version counter stays as it is: an
    increment would invalidate what graphs have saved, for a write that may never come.

    >>> import torch
    >>> weight = torch.zeros(2, 3)
    >>> expose(weight)
    >>> is_exposed(weight[1:]), is_exposed(weight.clone())
    (True, False)
    """
    with contextlib.suppress(NotImplementedError):  # sparse, or in oneDNN's own order
        # torch has one Python object for each storage, which lives as long as the storage does.
        tensor.untyped_storage().is_exposed = True  # type: ignore[attr-defined]


def is_exposed(tensor: torch.Tensor) -> bool:
    """Return whether code outside torch can write into a tensor's memory; see `expose`.

    A tensor without a single storage, such as a sparse one, is treated as exposed.

    >>> import torch
    >>> is_exposed(torch.zeros(2))
    False
    """
    try:
        return is_exposed_storage(tensor.untyped_storage())
    except NotImplementedError:
        return True


def is_exposed_storage(storage: torch.UntypedStorage) -> bool:
    """Return whether code outside torch can write into a storage; see `expose`."""
    return getattr(storage, "is_exposed", False)


def memory_summary() -> str:
    """Return a table of the arrays that are alive on each device, and of the process's memory.

    Looking for the arrays goes through all objects of the process, which takes a moment.

    >>> print(memory_summary().splitlines()[0])
    device        arrays         bytes
    """
    gc.collect()
    lines = [f"{'device':<8}{'arrays':>12}{'bytes':>14}"]
    for device, sizes in sorted(_live_storages().items()):
        lines.append(f"{device:<8}{len(sizes):>12}{sum(sizes.values()):>14,}")
    resident, peak = _process_memory()
    if resident:
        lines.append(f"process: {resident:,} bytes in memory, at most {peak:,}")
    return "\n".join([*lines, *_gpu_lines()])


def _live_storages() -> dict[str, dict[int, int]]:
    """Return address and size of the memory of all tensors, by device; shared memory once."""
    import torch

    kinds = (torch.Tensor, torch.nn.Parameter)  # subclasses may have no memory (FakeTensor)
    storages: dict[str, dict[int, int]] = {"cpu": {}}
    for thing in gc.get_objects():
        if type(thing) in kinds and thing.layout is torch.strided:
            try:
                storage = thing.untyped_storage()
                storages.setdefault(str(thing.device), {})[storage.data_ptr()] = storage.nbytes()
            except (RuntimeError, NotImplementedError):  # the device has no memory of its own
                continue
    return storages


def _process_memory() -> tuple[int, int]:
    """Return the resident memory of this process, now and at its peak; zeros if unknown."""
    if not sys.platform.startswith("linux"):
        return 0, 0
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123
        facts = dict(line.split(":", 1) for line in file if ":" in line)
    resident, peak = (int(facts[key].split()[0]) * 1024 for key in ("VmRSS", "VmHWM"))
    return resident, peak


def _gpu_lines() -> list[str]:
    from .. import accelerator  # lazy import: this module must not import torch

    uses = [accelerator.memory_use(i) for i in range(accelerator.count())]
    return [
        f"gpu({i}): {allocated:,} bytes in arrays, {reserved:,} reserved, at most {peak:,}"
        for i, (allocated, reserved, peak) in enumerate(uses)
    ]
