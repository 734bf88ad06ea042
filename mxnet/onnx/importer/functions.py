"""`F`: the functions that build symbols. They are generated, so a type checker knows little."""

from __future__ import annotations

from typing import Any

from ... import symbol

__all__ = ["F"]

F: Any = symbol
