"""Running symbols: executors and prepared programs."""

from __future__ import annotations

from . import control_flow
from .binding import bind, simple_bind
from .executor import Executor

__all__ = ["Executor", "bind", "control_flow", "simple_bind"]
