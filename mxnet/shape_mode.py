"""Which meaning shapes have in this thread: MXNet's classic one, or NumPy's."""

from __future__ import annotations

import threading


class _Mode(threading.local):
    """Class attributes are each new thread's defaults."""

    np_shape = False


_mode = _Mode()
_in_all_threads = False  # what set_np_shape(2) says


def is_np_shape() -> bool:
    """Return whether NumPy's meaning is in force: 0 is a size, () a scalar.

    In the classic meaning a size of 0 and the shape () are unknown.
    """
    return _mode.np_shape or _in_all_threads


def set_np_shape(active: bool | int) -> bool:
    """Choose the meaning and return the one that was in force; 2 chooses it for all threads.

    >>> set_np_shape(False)
    False
    """
    global _in_all_threads
    previous, _mode.np_shape = is_np_shape(), bool(active)
    _in_all_threads = active == 2
    return previous
