"""Running symbols: executors and prepared programs."""

from __future__ import annotations

from .. import ndarray
from . import onednn_graph, subgraphs
from .backends import register_backend
from .binding import bind, simple_bind
from .cached_op import CachedOp
from .compiled import Compiled
from .executor import Executor

__all__ = [
    "CachedOp",
    "Compiled",
    "Executor",
    "bind",
    "onednn_graph",
    "register_backend",
    "simple_bind",
    "subgraphs",
]

ndarray.CachedOp = CachedOp  # pyright: ignore[reportAttributeAccessIssue] (where MXNet has it)
