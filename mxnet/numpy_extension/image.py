"""`mx.npx.image`: image operators, and all of `mx.image`."""

from __future__ import annotations

from typing import Any

from ..base import numeric_types  # noqa: F401 (MXNet shows them here)
from ..util import is_np_array  # noqa: F401

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "cv2":
        import cv2

        return cv2
    from .. import image  # lazy import: mx.image is built on arrays

    return getattr(image, name)
