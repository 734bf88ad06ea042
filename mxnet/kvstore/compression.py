"""Gradient compression: each value becomes 0 or plus or minus a threshold; the rest waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..error import MXNetError, did_you_mean

HALF_TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}


class TwoBit:
    """Two bits a value, with what was lost added to the next gradient from the same place.

    Parameters
    ----------
    threshold : float
        Sums of at least this size are sent as this size.

    >>> twobit = TwoBit(0.5)
    >>> twobit("w", torch.tensor([0.3, -0.7])), twobit("w", torch.tensor([0.3, -0.1]))
    (tensor([ 0.0000, -0.5000]), tensor([0.5000, 0.0000]))
    """

    def __init__(self, threshold: float = 0.5) -> None:
        if not threshold > 0:
            raise MXNetError(f"threshold must be greater than 0, got {threshold}")
        self.threshold = threshold
        self.residuals: dict[Any, Tensor] = {}
        # Lists of keys that all workers have compressed before, by checksum.
        self.agreed: dict[bytes, None] = {}

    def __call__(self, place: Any, grad: Tensor) -> Tensor:
        """Return what is sent of a gradient; `place` names where it comes from."""
        residual = self.residuals.get(place)
        if residual is None or residual.shape != grad.shape or residual.device != grad.device:
            residual = self.residuals[place] = torch.zeros_like(grad)
        residual.add_(grad)
        sent = residual.sign().mul_(self.threshold)
        sent.masked_fill_(residual.abs() < self.threshold, 0.0)
        residual.sub_(sent)
        return sent


def make_compression(params: Mapping[str, Any]) -> TwoBit:
    """Make a compression from its description, ``{'type': '2bit', 'threshold': 0.5}``."""
    if not isinstance(params, Mapping):
        raise MXNetError(
            f"unexpected type for compression_params: {type(params).__name__}, not dict"
        )
    unknown = [k for k in params if k not in ("type", "threshold")]
    if unknown:
        hint = did_you_mean(str(unknown[0]), ("type", "threshold"))
        raise MXNetError(f"Gradient compression has no parameter {unknown[0]!r}. {hint}".rstrip())
    if "type" not in params:
        raise MXNetError("Required parameter type of gradient compression is not presented: '2bit'")
    if params["type"] != "2bit":
        raise MXNetError(
            f"Unknown type for gradient compression {params['type']}: there is '2bit', and for "
            "distributed stores 'fp16' and 'bf16'."
        )
    try:
        return TwoBit(float(params.get("threshold", 0.5)))
    except (TypeError, ValueError):
        raise MXNetError(f"threshold must be a number, got {params['threshold']!r}") from None
