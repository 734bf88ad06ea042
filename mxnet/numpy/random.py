"""`mx.np.random`: sampling, made from the composites."""

from __future__ import annotations

__all__: list[str] = []
