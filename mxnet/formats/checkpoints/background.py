"""Write checkpoints in a thread of their own, one at a time."""

from __future__ import annotations

import atexit
import os
import threading
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path

from ...error import MXNetError

MAX_EXIT_SECONDS = 300.0  # for which the end of the process waits for a write


class _Write(threading.Thread):
    def __init__(self, function: Callable[[], None], path: Path) -> None:
        # A daemon: Python would wait for another thread without a limit when it exits.
        super().__init__(name="mxnext-checkpoint", daemon=True)
        self.path = path
        self.error: BaseException | None = None
        self._function = function

    def run(self) -> None:
        try:
            self._function()
        except BaseException as error:  # raised where the user sees it
            self.error = error
        finally:
            del self._function  # with the copies that it holds


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
        Seconds after which an error is raised; None waits as long as it takes.

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
        if _current is not write:  # another thread waited, too, and has the error
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
    """Drop the write in a forked process, which has no such thread; the parent completes it."""
    global _lock, _current
    _lock, _current = threading.RLock(), None


atexit.register(_finish_at_exit)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
