"""Executors of bound symbols, and registration of backends; see `runtime/`."""

from __future__ import annotations

from . import ndarray
from .runtime import control_flow, onednn_graph  # noqa: F401 (they register operators and a backend)
from .runtime.backends import register_backend
from .runtime.binding import bind, simple_bind
from .runtime.cached_op import CachedOp
from .runtime.compiled import Compiled
from .runtime.executor import Executor

__all__ = ["CachedOp", "Compiled", "Executor", "bind", "register_backend", "simple_bind"]

ndarray.CachedOp = CachedOp  # pyright: ignore[reportAttributeAccessIssue] (where MXNet has it)
