"""`LossScaler`: the factor that prevents underflow of 16-bit gradients."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from ... import ndarray as nd

__all__ = ["LossScaler"]


class LossScaler:
    """Halves the factor when gradients overflow, and doubles it after 2000 steps without.

    >>> mx.contrib.amp.loss_scaler.LossScaler().loss_scale
    65536.0
    """

    def __init__(self) -> None:
        self._loss_scale = 2.0**16
        self._next_loss_scale = self._loss_scale
        self._max_loss_scale = 2.0**24
        self._scale_seq_len = 2000
        self._unskipped = 0

    @property
    def loss_scale(self) -> float:
        """The factor of the loss."""
        return self._loss_scale

    def has_overflow(self, params: Iterable[Any]) -> bool:
        """Return whether a gradient of the parameters is infinite or NaN, and adapt the factor.

        The new factor applies from the next step.
        """
        self._loss_scale = self._next_loss_scale
        grads = [grad for p in params if p.grad_req != "null" for grad in p.list_grad()]
        overflow = bool(grads) and not _all_finite(grads)
        if overflow:
            self._next_loss_scale = self._loss_scale / 2
            self._unskipped = 0
            logging.info("AMP: decreasing loss scale to %f", self._next_loss_scale)
            return True
        self._unskipped += 1
        if self._unskipped == self._scale_seq_len:
            self._unskipped = 0
            self._next_loss_scale = min(self._max_loss_scale, self._loss_scale * 2)
            logging.info("AMP: increasing loss scale to %f", self._next_loss_scale)
        return False


def _all_finite(arrays: list[Any]) -> bool:
    by_device: dict[Any, list[Any]] = {}
    for array in arrays:
        dense = array if array.stype == "default" else array.data
        by_device.setdefault(array.context, []).append(dense)
    return all(
        nd.multi_all_finite(*group, num_arrays=len(group)).asscalar() == 1
        for group in by_device.values()
    )
