"""Tracebacks that show the user's lines: frames inside MXNext and torch are left out.

Errors inside Gluon blocks are shortened when they leave the block, all others when a program or a
notebook shows them. ``MXNET_FULL_TRACEBACK=1`` shows everything.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

import torch

from ..error import MXNetError
from . import env

__all__ = ["hide_internal_frames", "install", "is_internal"]

_INTERNAL = (
    *(str(folder) + os.sep for folder in (Path(__file__).parents[1], Path(torch.__file__).parent)),
    "<generated function of ",
    "<prepared graph>",
    "<mxnet.",
)


_PYTHON = str(Path(os.__file__).parent) + os.sep


def is_internal(trace: TracebackType, caller_is_internal: bool = False) -> bool:
    """Return whether a frame is one of MXNext or torch, or of Python's library called by them."""
    name = trace.tb_frame.f_code.co_filename
    if name.startswith(_INTERNAL):
        return True
    is_library = name.startswith(_PYTHON) and "site-packages" not in name
    return caller_is_internal and is_library


def hide_internal_frames(error: BaseException) -> None:
    """Remove internal frames from the traceback of an error.

    The last frame of an error that is not MXNext's stays: its message may mean nothing without
    the line. A kernel's error, which ours says in other words, is left out.
    """
    if env.get("MXNET_FULL_TRACEBACK"):
        return
    is_own = isinstance(error, MXNetError)
    is_raised_here = is_own or _is_raised_here(error)
    error.__traceback__ = _without_internal(error.__traceback__, keep_last=not is_own)
    cause = error.__cause__ or error.__context__
    if not is_raised_here or cause is None:
        return
    if _without_internal(cause.__traceback__, keep_last=False) is None:
        error.__cause__ = None
        error.__suppress_context__ = True


def _without_internal(trace: TracebackType | None, keep_last: bool) -> TracebackType | None:
    entries, hidden = [], False
    while trace is not None:
        hidden = is_internal(trace, hidden)
        if not hidden or (keep_last and trace.tb_next is None):
            entries.append(trace)
        trace = trace.tb_next
    shown: TracebackType | None = None
    for entry in reversed(entries):
        shown = TracebackType(shown, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return shown


def _is_raised_here(error: BaseException) -> bool:
    """Return whether the last frame of an error is one of MXNext or torch."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and is_internal(trace)


def _comes_from_here(error: BaseException) -> bool:
    if _without_internal(error.__traceback__, keep_last=False) is None:
        return False
    return isinstance(error, MXNetError) or _is_raised_here(error)


def install() -> None:
    """Shorten the tracebacks of uncaught errors of MXNext, in Python and in notebooks."""
    show = sys.excepthook

    def show_shortened(kind: type[BaseException], error: Any, trace: TracebackType | None) -> Any:
        if isinstance(error, Exception) and _comes_from_here(error):
            hide_internal_frames(error)
            trace = error.__traceback__
        return show(kind, error, trace)

    sys.excepthook = show_shortened
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is not None:
        shell.set_custom_exc((MXNetError,), _show_in_notebook)


def _show_in_notebook(shell: Any, kind: type, error: Any, trace: Any, tb_offset: Any = None) -> Any:
    hide_internal_frames(error)
    shell.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset)
