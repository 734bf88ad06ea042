"""`mx.contrib.nd`: the same functions as `mx.nd.contrib`."""

from __future__ import annotations

from typing import Any

from ..ndarray import contrib as _contrib

__all__ = [name for name in dir(_contrib) if not name.startswith("_")]


def __getattr__(name: str) -> Any:
    return getattr(_contrib, name)


def __dir__() -> list[str]:
    return list(__all__)
