"""A fully connected layer on all steps of a sequence at once."""

from __future__ import annotations

import math

from torch import Tensor

from ..attributes import Positive
from ..declare import op
from ..nn.dense import fully_connected
from ..shapes import UNKNOWN, KnownShapes, Shape


@op("_project_steps", optional={"bias": lambda a: not a["no_bias"]})
def project_steps(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    num_hidden: Positive,
    no_bias: bool = False,
    axis: int = 1,
) -> Tensor:
    """Apply `FullyConnected` to each slice of data along an axis; the results lie along axis 0.

    >>> x, w = mx.nd.array([[[1, 2], [3, 4], [5, 6]]]), mx.nd.array([[1, 1]])
    >>> mx.nd._internal._project_steps(x, w, num_hidden=1, no_bias=True).asnumpy()
    array([[[ 3.]],
           [[ 7.]],
           [[11.]]], dtype=float32)
    """
    steps = data.movedim(axis, 0)
    count, batch = steps.shape[:2]
    # One product of two matrices; with the steps first, the slices of the result are contiguous.
    rows = steps.reshape(count * batch, -1) if steps.numel() else steps.flatten(0, 1)
    out = fully_connected.function(
        rows, weight, bias, num_hidden=num_hidden, no_bias=no_bias, flatten=True
    )
    return out.view(count, batch, num_hidden)


@project_steps.infer_outputs
def project_steps_shape(
    data: Shape | None, *_: Shape | None, num_hidden: int, axis: int, **__: object
) -> Shape | None:
    """The number of steps, the slices' first size, the hidden size."""
    if data is None or len(data) < 2:
        return None
    rest = [n for i, n in enumerate(data) if i != axis % len(data)]
    return (data[axis], rest[0], num_hidden)


@project_steps.infer_inputs
def project_steps_inputs(
    data: Shape | None, *_: Shape | None, num_hidden: int, axis: int, **__: object
) -> dict[str, Shape]:
    """Infer weight and bias from the size of a slice."""
    width = UNKNOWN
    if data is not None:
        rest = [n for i, n in enumerate(data) if i != axis % len(data)][1:]
        width = UNKNOWN if UNKNOWN in rest else math.prod(rest)
    return {"weight": (num_hidden, width), "bias": (num_hidden,)}


@project_steps.work
def project_steps_work(ins: KnownShapes, outs: KnownShapes, attrs: dict) -> int:
    """Every output element takes one multiply-add for each column of the weight."""
    return math.prod(outs[0]) * ins[1][1]
