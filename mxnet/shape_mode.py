"""Which meaning shapes have in this thread: MXNet's classic one, or NumPy's."""

from __future__ import annotations

import threading


class _Mode(threading.local):
    """Class attributes are each new thread's defaults."""

    np_shape = False


_mode = _Mode()


def is_np_shape() -> bool:
    """Return whether NumPy's meaning is in force: 0 is a size, () a scalar.

    In the classic meaning a size of 0 and the shape () are unknown.
    """
    return _mode.np_shape


def set_np_shape(active: bool) -> bool:
    """Choose the meaning and return the one that was in force.

    >>> set_np_shape(False)
    False
    """
    previous, _mode.np_shape = _mode.np_shape, bool(active)
    return previous
