"""Range checks of labels and indices, which MXNet clips silently."""

from __future__ import annotations

import warnings
from typing import Any

from .._process import env
from ..ndarray import NDArray

__all__ = ["RangeCheck"]

MAX_CHECKS = 2  # number of checked batches


class RangeCheck:
    """Warns once if integers of the first batches are out of range; see ``MXNET_CHECK_LABELS``.

    The message names the layer, the integers (`what`) and what they select (`of`), both plurals,
    and the `effect` of integers out of range. `allow_negative` accepts integers below 0: many
    programs mark padding with -1.
    """

    def __init__(
        self,
        layer: str,
        what: str,
        of: str,
        *,
        allow_negative: bool = False,
        effect: str = "is clipped",
    ) -> None:
        self._text = f"{layer}: the {what} go from {{low:g}} to {{high:g}}, but there are {{size}} "
        self._text += f"{of} (0 to {{last}}); what is outside {effect}, as in MXNet."
        self._allow_negative = allow_negative
        self._left = MAX_CHECKS if env.get("MXNET_CHECK_LABELS") else 0

    @property
    def is_active(self) -> bool:
        """Whether the next batch is checked."""
        return self._left > 0

    def __call__(self, integers: Any, size: int, ignore: float | None = None) -> None:
        """Check a batch; integers that equal `ignore` are skipped."""
        if not isinstance(integers, NDArray) or integers.stype != "default" or not integers.size:
            return
        if integers.context.device_type == "gpu":  # reading values would require synchronization
            self._left = 0
            return
        self._left -= 1
        values = integers.asnumpy()
        if ignore is not None:
            values = values[values != ignore]
        if not values.size:
            return
        low, high = float(values.min()), float(values.max())
        if high >= size or (low < 0 and not self._allow_negative):
            self._left = 0
            text = self._text.format(low=low, high=high, size=size, last=size - 1)
            warnings.warn(text, stacklevel=3)
