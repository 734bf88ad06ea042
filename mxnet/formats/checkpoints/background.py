"""Write checkpoints in a background thread, one at a time."""

from __future__ import annotations

import atexit
import os
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from ...error import MXNetError

MAX_EXIT_SECONDS = 300.0  # seconds to wait for a write at exit


class _Write(threading.Thread):
    def __init__(self, function: Callable[[], None], path: Path) -> None:
        # A daemon: at exit Python would wait for any other thread without a limit.
        super().__init__(name="mxnext-checkpoint", daemon=True)
        self.path = path
        self.error: BaseException | None = None
        self._function = function

    def run(self) -> None:
        try:
            self._function()
        except BaseException as error:  # raised later in the user's thread
            self.error = error
        finally:
            del self._function  # free its copies


_lock = threading.RLock()
_current: _Write | None = None


def start(function: Callable[[], None], path: Path) -> None:
    """Run a function that writes a file, after the previous one has succeeded."""
    global _current
    with _lock:
        wait()
        _current = _Write(function, path)
        _current.start()


def wait(timeout: float | None = None) -> None:
    """Wait until the checkpoint of ``save(..., wait=False)`` is on the disk.

    An error of that write is raised here, or by the next `save` or `load`, once.

    Parameters
    ----------
    timeout
        Seconds after which an error is raised; None: no limit.

    >>> net = mx.gluon.nn.Dense(1, in_units=2)
    >>> net.initialize()
    >>> path = mx.checkpoint.save("run", step=8, net=net, wait=False)
    >>> mx.checkpoint.wait()
    >>> path.exists()
    True
    """
    global _current
    write = _current
    if write is None:
        return
    write.join(timeout)
    if write.is_alive():
        raise MXNetError(f"{str(write.path)!r} is not written after {timeout:g} seconds.")
    with _lock:
        if _current is not write:  # another thread waited too and raised the error
            return
        _current = None
    if write.error is not None:
        raise write.error


def _finish_at_exit() -> None:
    try:
        wait(MAX_EXIT_SECONDS)
    except BaseException as error:
        warnings.warn(
            "The last checkpoint of mx.checkpoint.save(..., wait=False) is missing: "
            + "".join(traceback.format_exception_only(error)).rstrip(),
            stacklevel=1,
        )


def _forget() -> None:
    """Drop the write in a forked process; the parent's thread completes it."""
    global _lock, _current
    _lock, _current = threading.RLock(), None


atexit.register(_finish_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
