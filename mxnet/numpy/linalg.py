"""`mx.np.linalg`: linear algebra, made from the composites."""

from __future__ import annotations

__all__: list[str] = []
