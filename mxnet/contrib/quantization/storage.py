"""How parameters are kept as integers."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...imperative.handle import plain, wrap_plain
from ...ndarray import NDArray
from ...ops.fused.int8.weights import EIGHT_BITS, WEIGHT_STEPS
from ...ops.quantization.conversions import INT32_STEPS


@dataclass(frozen=True)
class Storage:
    """Which ranges and types the integers of a model have.

    Parameters
    ----------
    filters : whether each filter of a convolution has a range of its own.
    rows : whether each row of a dense layer's weights has; by default as `filters`.
    wide_bias : whether a bias has 32 bits; else 8.
    exact : whether weights take the bits that this processor's fast kernels compute exactly with.

    >>> stored, low, high = Storage().store(mx.nd.array([-1, 0.5]))
    >>> stored.asnumpy(), high.asnumpy()
    (array([-127,   64], dtype=int8), array([1.], dtype=float32))
    """

    filters: bool = False
    rows: bool | None = None
    wide_bias: bool = False
    exact: bool = False

    def store(self, array: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Return an array as integers, and both ends of its range."""
        real = plain(array).detach().float()
        if real.ndim == 1:
            steps = INT32_STEPS if self.wide_bias else EIGHT_BITS
            parts = self._integers(real, steps, steps, self.wide_bias)
        else:
            apart = self.filters if real.ndim > 2 or self.rows is None else self.rows
            steps = WEIGHT_STEPS if self.exact else EIGHT_BITS
            parts = self._integers(real if apart else real.unsqueeze(0), steps, EIGHT_BITS, False)
            parts = parts[0].reshape(real.shape), *parts[1:]
        integers, low, high = (wrap_plain(NDArray, part) for part in parts)
        return integers, low, high

    def store_named(self, name: str, array: NDArray) -> dict[str, NDArray]:
        """Return an array as integers and both ends of its range, by their names in a model."""
        return dict(zip((name, f"{name}_min", f"{name}_max"), self.store(array), strict=True))

    @staticmethod
    def _integers(
        real: torch.Tensor, steps: float, all_steps: float, is_wide: bool
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Quantize each row to `steps`; the range is that of all steps of the type."""
        rows = real.flatten(1) if real.ndim > 1 else real.unsqueeze(0)
        largest = rows.abs().amax(1).double()
        scale = torch.where(largest > 0, steps / largest, 0.0)
        integers = (rows.double() * scale.unsqueeze(1)).round_()
        integers = integers.to(torch.int32 if is_wide else torch.int8).reshape(real.shape)
        end = (largest * (all_steps / steps)).float()
        return integers, -end, end
