"""The classification loss from log probabilities, as one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..declare import op
from ..shapes import Shape
from ..tensor.arithmetic import mul_scalar
from ..tensor.elementwise import negative
from ..tensor.indexing import pick
from ..tensor.reduce import mean

_NO_REDUCTION = 0
_NEVER = -(1 << 62)  # no label equals torch's `ignore_index`
_DTYPES = (torch.float32, torch.float64)
_loss = torch.ops.aten.nll_loss.default
_loss_backward = torch.ops.aten.nll_loss_backward.default


def is_by_row(data: Shape, label: Shape) -> bool:
    """Return whether the shapes are those of a matrix and one label per row.

    >>> is_by_row((4, 3), (4,)), is_by_row((4, 3), (4, 1)), is_by_row((4, 3), (4, 3))
    (True, True, False)
    """
    return len(data) == 2 and label in ((data[0],), (data[0], 1))


def _is_plain(data: Tensor, label: Tensor) -> bool:
    """Return whether torch's kernel supports these inputs."""
    return data.dtype in _DTYPES and is_by_row(data.shape, label.shape)


@op(
    "_likelihood_loss",
    types="T I -> T",
    precision="full",
    without_gradient=("label",),
    repeatable=True,  # if a label is out of range, the repeated kernel raises an error too
)
def likelihood_loss(data: Tensor, label: Tensor, *, scale: float = -1.0) -> Tensor:
    """Return ``scale * data[i, label[i]]`` for each row; labels out of range are clipped.

    Parameters
    ----------
    scale
        Factor of the picked elements.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> mx.nd._internal._likelihood_loss(x, mx.nd.array([0, 1])).asnumpy()
    array([-1., -4.], dtype=float32)
    """
    if _is_plain(data, label):
        try:
            out = _loss(data, label.reshape(-1).long(), None, _NO_REDUCTION, _NEVER)
            return out if scale == -1.0 else out * -scale
        except IndexError:  # a label out of range
            pass
    picked = pick.function(data, label, axis=-1, keepdims=True) * scale
    return picked.flatten(1).mean(1)


@likelihood_loss.infer_outputs
def likelihood_loss_shape(data: Shape | None, label: Shape | None, **_: object) -> Shape | None:
    """One element per row."""
    return None if data is None else data[:1]


@likelihood_loss.decomposition
def likelihood_loss_operators(apply: Callable, data: Any, label: Any, *, scale: float) -> Any:
    """Pick, scale, and take the mean of each row."""
    picked = apply(pick, data, label, axis=-1, keepdims=True)
    scaled = apply(negative, picked) if scale == -1.0 else apply(mul_scalar, picked, scalar=scale)
    return apply(mean, scaled, axis=(0,), exclude=True)
