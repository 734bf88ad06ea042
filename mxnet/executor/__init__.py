"""Running symbols: executors and prepared programs."""

from __future__ import annotations

from .binding import bind, simple_bind
from .executor import Executor

__all__ = ["Executor", "bind", "simple_bind"]
