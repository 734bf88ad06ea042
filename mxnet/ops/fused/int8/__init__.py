"""8-bit networks whose ranges are known beforehand.

An 8-bit array of these operators is always uint8 and stands for ``(q - zero) * step``; both numbers
are attributes. `zero` is 0 where nothing is negative, else 128. Images are laid out channels last.
"""

from __future__ import annotations

from . import arrays, layers

__all__ = ["arrays", "layers"]
