"""`mx.np.linalg`: linear algebra, generated from the composites."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._stubs.linalg import *  # noqa: F403

__all__: list[str] = []
