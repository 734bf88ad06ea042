"""The fully connected layer."""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor

from ...error import ShapeError
from ..attributes import Positive
from ..declare import op
from ..shapes import UNKNOWN, KnownShapes, Shape, Shapes, unify

linear = F.linear


def _dense_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Infer the output from the data, and the batch size from the output (for recurrent cells)."""
    data = ins[0]
    if data is None:
        return ins, outs
    batch = data[:1] if attrs["flatten"] else data[:-1]
    out = unify((*batch, attrs["num_hidden"]), outs[0], "the output of FullyConnected")
    return [(*out[:-1], *data[len(batch) :]), *ins[1:]], [out]


@op(
    "FullyConnected",
    "_npx_fully_connected",
    "_sparse_FullyConnected",
    optional={"bias": lambda a: not a["no_bias"]},
    shape=_dense_shapes,
    precision="half",
    overwritable=True,
    names_output=True,
    repeatable=True,
)
def fully_connected(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    num_hidden: Positive,
    no_bias: bool = False,
    flatten: bool = True,
) -> Tensor:
    """Apply a linear transformation ``y = x W^T + b`` to the data, by default flattened to 2-D.

    Parameters
    ----------
    weight
        Weights of shape ``(num_hidden, features)``.
    num_hidden
        Number of output features.
    flatten
        Whether to flatten all axes but the first; otherwise only the last axis is transformed.

    >>> mx.nd.FullyConnected(mx.nd.array([[1, 2]]), mx.nd.array([[3, 4], [5, 6]]),
    ...                      mx.nd.array([0, 1]), num_hidden=2).asnumpy()
    array([[11., 18.]], dtype=float32)
    """
    if weight.shape[0] != num_hidden:
        raise ShapeError(
            f"Shape inconsistent in FullyConnected, Provided = {list(weight.shape)}: a weight for "
            f"num_hidden={num_hidden} has {num_hidden} rows."
        )
    if bias is not None and bias.ndim != 1:
        if bias.shape != (num_hidden, 1):  # sparse programs pass a column
            raise ShapeError(
                f"Unexpected shape for bias {list(bias.shape)} in FullyConnected: needed "
                f"[{num_hidden}]."
            )
        bias = bias.reshape(num_hidden)
    if flatten:
        ndim = data.ndim
        if ndim > 2:
            data = data.flatten(1)
        elif ndim == 1:
            data = data.unsqueeze(1)
    try:
        return linear(data, weight, bias)
    except RuntimeError as error:
        if weight.shape[1:] == data.shape[-1:]:
            raise
        raise ShapeError(
            f"Shape inconsistent in FullyConnected, Provided = {list(weight.shape)}, "
            f"inferred shape={[num_hidden, data.shape[-1]]} for the weight: the size of its rows "
            f"must be that of the data, {data.shape[-1]}. Was the layer built for data of a "
            "different size?"
        ) from error


@fully_connected.infer_inputs
def fully_connected_inputs(
    data: Shape | None,
    weight: Shape | None,
    bias: Shape | None,
    *,
    num_hidden: int,
    flatten: bool,
    **_: object,
) -> dict[str, Shape]:
    """Infer weight and bias from data."""
    width = UNKNOWN
    if data is not None and not flatten:
        width = data[-1]
    elif data is not None:
        width = 1
        for size in data[1:]:
            width = width * size if size != UNKNOWN and width != UNKNOWN else UNKNOWN
    return {"weight": (num_hidden, width), "bias": (num_hidden,)}


@fully_connected.work
def fully_connected_work(ins: KnownShapes, outs: KnownShapes, attrs: dict) -> int:
    """One multiply-add for each output element and each column of the weight."""
    return math.prod(outs[0]) * ins[1][1]
