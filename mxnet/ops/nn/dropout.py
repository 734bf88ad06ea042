"""Dropout."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
from torch import Tensor

from ...error import AttributeConversionError
from ..attributes import Fraction, Shape
from ..declare import OpContext, op
from ..shapes import same


@op(
    "Dropout",
    "_npx_dropout",
    outputs=("output",),
    total=2,
    shape=same,
    random=True,
    identity=lambda a: a["mode"] != "always" and 0.0 <= a["p"] <= 1.0,
    keeps_layout=True,
    names_single_input=True,
    hidden_outputs=(None, ("mask",)),
)
def dropout(
    data: Tensor,
    *,
    p: Fraction = 0.5,
    mode: Literal["always", "training"] = "training",
    axes: Shape = (),
    cudnn_off: bool | None = False,
    run: OpContext,
) -> Tensor:
    """In training, set elements to 0 with probability `p` and scale the others by ``1 / (1 - p)``.

    The mask is broadcast along `axes`.

    Parameters
    ----------
    p
        Probability of setting an element to 0.
    mode
        ``'training'``: dropout in training only; ``'always'``: also in inference.
    axes
        Axes along which the mask is broadcast, so that whole slices are dropped.

    >>> mx.nd.Dropout(mx.nd.array([1, 2]), p=0.5).asnumpy()  # not training: nothing is dropped
    array([1., 2.], dtype=float32)
    """
    if not 0.0 <= p <= 1.0:
        raise AttributeConversionError(
            f"value {p} for Parameter p should be in the range [0, 1], in operator Dropout: "
            "p is the fraction that is dropped in training."
        )
    if not (run.training or mode == "always") or p == 0:
        return data.clone()
    if not axes and data.is_contiguous():
        return torch.dropout(data, p, True)
    # Torch draws in memory order, which differs between graphs and eager calls.
    return data * _mask(data, p, axes)


def _mask(data: Tensor, p: float, axes: Shape) -> Tensor:
    """Return the mask: 0 for dropped elements, ``1 / (1 - p)`` for the others."""
    shape = list(data.shape)
    for axis in axes:
        shape[axis] = 1
    return torch.dropout(data.new_ones(shape), p, True)


def _with_mask(
    data: Tensor,
    *,
    p: float = 0.5,
    mode: str = "training",
    axes: Shape = (),
    cudnn_off: bool | None = False,
    run: OpContext,
) -> tuple[Tensor, Tensor]:
    drops = run.training or mode == "always"
    mask = _mask(data, p if drops else 0.0, axes)
    return data * mask, mask


dropout.variant("hidden_outputs")(lambda attrs: partial(_with_mask, **attrs))
