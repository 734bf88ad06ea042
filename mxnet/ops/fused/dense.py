"""Fully connected layers of compiled graphs: packed weights, and all steps of a sequence.

Packing a weight for oneDNN costs the time of some calls and a copy of the weight. It pays off for
large weights and few rows: 4 to 32 rows take 0.75 to 0.9 of the time with 2 million elements, 0.45
to 0.8 with 16 million. There is no gain with one million elements (AVX2) or more rows; two rows
take 1.3 of the time with AVX-512.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...torch_private import DenseKernels, dense_kernels
from ..attributes import Positive
from ..declare import op
from ..nn.dense import fully_connected
from ..shapes import UNKNOWN, KnownShapes, Shape
from .prepared_values import Unchanged

MIN_WEIGHT = 2_000_000  # elements
MIN_ROWS, MAX_ROWS = 4, 32
MAX_ROW_COUNTS = 2  # packed weights depend on the number of rows
MAX_CHANGES = 16  # number of consecutive changes after which weights are not packed again


class PreparedDense:
    """The specialized kernel of `FullyConnected` at one node."""

    def __init__(self, attrs: dict[str, Any], kernels: DenseKernels) -> None:
        self._attrs, self._kernels = attrs, kernels
        self._hidden, self._flattens = attrs["num_hidden"], attrs["flatten"]
        self._source: Unchanged | None = None  # key of the packed weights
        self._packed: dict[int, Tensor] = {}
        self._changes = 0  # consecutive changes of the weight

    def __call__(self, data: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return the result of the layer."""
        if weight.numel() < MIN_WEIGHT or self._changes > MAX_CHANGES:
            return fully_connected.function(data, weight, bias, **self._attrs)
        packed = self._find(data, weight, bias)
        if packed is None:
            return fully_connected.function(data, weight, bias, **self._attrs)
        if self._flattens and data.ndim > 2:
            data = data.flatten(1)
        return self._kernels.transform(data, packed, bias, "none", [], "")

    def _find(self, data: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor | None:
        """Return the weight packed for this number of rows, or None."""
        if self._source is not None and self._source.holds_for((weight,)):
            self._changes = 0
        else:
            self._packed = {}  # a new array: another thread may use the old one
            self._source = Unchanged.of((weight,))
            if self._source is None:
                return None
            self._changes += 1
        if data.dtype is not torch.float32 or not data.is_cpu or data.ndim < 2:
            return None
        rows = len(data) if self._flattens else math.prod(data.shape[:-1])
        by_rows = self._packed
        packed = by_rows.get(rows)
        is_new = packed is None and len(by_rows) < MAX_ROW_COUNTS
        if is_new and MIN_ROWS <= rows <= MAX_ROWS:
            if not self._fits(data, weight, bias):
                return None
            packed = by_rows[rows] = self._kernels.pack(weight, rows)
        return packed

    def _fits(self, data: Tensor, weight: Tensor, bias: Tensor | None) -> bool:
        """Return whether shapes and types are valid; otherwise the operator raises."""
        width = math.prod(data.shape[1:]) if self._flattens else data.shape[-1]
        if weight.shape != (self._hidden, width) or weight.dtype is not torch.float32:
            return False
        if bias is None:
            return True
        return bias.shape == (self._hidden,) and bias.dtype is torch.float32


@fully_connected.variant("node")
def prepare_dense(attrs: dict, differentiable: bool) -> Callable | None:
    """Return a kernel that packs the weight, in inference."""
    kernels = None if differentiable else dense_kernels()
    return None if kernels is None else PreparedDense(attrs, kernels)


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
    """Apply `FullyConnected` to each slice of the data along an axis; stack results on axis 0.

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
    """The number of steps, the first size of the slices, the hidden size."""
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
    """One multiply-add for each output element and each column of the weight."""
    return math.prod(outs[0]) * ins[1][1]
