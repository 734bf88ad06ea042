"""Joining 8-bit arrays and looking up their rows."""

from __future__ import annotations

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import DType
from ..declare import Op, op
from ..shapes import Shape, Shapes, TypePattern
from ..tensor.indexing import embedding, embedding_shape
from ..tensor.joining import concat
from .conversions import LAYER_STEPS, _check_dtype, _check_ranges, _larger_end, range_step
from .layers import OUTPUTS

Ranged = tuple[Tensor, Tensor, Tensor]


def _joined_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    assert concat.shape_rule is not None
    count = len(ins) // 3
    found, out = concat.shape_rule(ins[:count], outs[:1], attrs)
    return [*found, *[(1,)] * (2 * count)], [out[0], (1,), (1,)]


class _JoinedTypes(TypePattern):
    """Unsigned if all arrays are; ranges are float32."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        count = len(ins) // 3
        known = ins[:count]
        joined = torch.int8 if torch.int8 in known else torch.uint8
        joined = outs[0] if None in known else joined
        ends = [torch.float32] * 2
        return [*known, *ends * count], [joined, *ends]


def _joined_inputs(attrs: dict) -> list[str]:
    """Return the arrays and then both ends of each, as MXNet calls them."""
    count = attrs["num_args"]
    ends = [f"arg{i}_{end}" for i in range(count) for end in ("min", "max")]
    return [*(f"arg{i}" for i in range(count)), *ends]


@op(
    "_contrib_quantized_concat",
    outputs=OUTPUTS,
    shape=_joined_shapes,
    input_names=_joined_inputs,
    quantizes=concat,
)
def quantized_concat(*data: Tensor, num_args: int, dim: int = 1) -> Ranged:
    """Join 8-bit arrays; the result has the range that holds all of them.

    Parameters
    ----------
    data
        The arrays, then both ends of the first one's range, of the second one's and so on.
    num_args
        How many arrays are joined.
    dim
        The axis to join along.

    >>> x, one = mx.nd.array([[127, 10]], dtype="int8"), mx.nd.ones(1)
    >>> made, _, high = mx.nd.contrib.quantized_concat(x, x, -one, one, -2 * one, 2 * one, num_args=2)
    >>> made.asnumpy(), high.asnumpy()
    (array([[ 64,   5, 127,  10]], dtype=int8), array([2.], dtype=float32))
    """  # noqa: E501 (one line of input)
    name = "_contrib_quantized_concat"
    arrays, ends = data[:num_args], data[num_args:]
    if len(ends) != 2 * num_args or not arrays:
        raise ShapeError(
            f"{name}: {num_args} arrays need both ends of their ranges, {3 * num_args} inputs in "
            f"all; got {len(data)}."
        )
    for array in arrays:
        _check_dtype(name, array, torch.int8, torch.uint8)
    _check_ranges(name, *ends)
    low = torch.stack(ends[::2]).amin(0)
    high = torch.stack(ends[1::2]).amax(0)
    is_unsigned = all(a.dtype is torch.uint8 for a in arrays)
    dtype = torch.uint8 if is_unsigned else torch.int8
    step = _larger_end(low, high) / LAYER_STEPS[dtype]
    parts = [
        _rescale(array, range_step(array, *ends[2 * i : 2 * i + 2]), step, dtype)
        for i, array in enumerate(arrays)
    ]
    return torch.cat(parts, dim), low, high


quantized_concat.type_pattern = _JoinedTypes(None)


def _rescale(array: Tensor, old: Tensor, new: Tensor, dtype: torch.dtype) -> Tensor:
    if array.dtype is dtype and torch.equal(old, new):
        return array
    limits = torch.iinfo(dtype)
    ratio = torch.where(new > 0, old / new, 0.0)
    return (array.float() * ratio).round_().clamp_(limits.min, limits.max).to(dtype)


@op(
    "_contrib_quantized_embedding",
    outputs=OUTPUTS,
    types="I int8 float32 -> int8 float32",
)
def quantized_embedding(
    data: Tensor,
    weight: Tensor,
    min_weight: Tensor,
    max_weight: Tensor,
    *,
    input_dim: int,
    output_dim: int,
    dtype: DType = torch.float32,
    sparse_grad: bool = False,
) -> Ranged:
    """Look up a row of 8-bit weights for each index; the range stays.

    Parameters
    ----------
    data
        Indices; those out of range are clipped.
    weight
        8-bit rows of shape ``(input_dim, output_dim)``.
    input_dim
        Number of rows.
    output_dim
        Size of a row.
    dtype, sparse_grad
        Accepted for compatibility, without effect.

    >>> w, one = mx.nd.array([[1, 2], [3, 4]], dtype="int8"), mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_embedding(mx.nd.array([1, 0]), w, -one, one, input_dim=2,
    ...                                   output_dim=2)[0].asnumpy()
    array([[3, 4],
           [1, 2]], dtype=int8)
    """
    name = "_contrib_quantized_embedding"
    _check_dtype(name, weight, torch.int8)
    _check_ranges(name, min_weight, max_weight)
    rows = embedding.function(data, weight, input_dim=input_dim, output_dim=output_dim)
    return rows, min_weight.clone(), max_weight.clone()


@quantized_embedding.infer_inputs
def quantized_embedding_inputs(
    *_: Shape | None, input_dim: int, output_dim: int, **__: object
) -> dict[str, Shape]:
    """Infer the rows from the attributes."""
    return {"weight": (input_dim, output_dim), "min_weight": (1,), "max_weight": (1,)}


@quantized_embedding.infer_outputs
def quantized_embedding_outputs(
    data: Shape | None, *_: Shape | None, **attrs: object
) -> list[Shape] | None:
    """Infer a row for each index."""
    out = embedding_shape(data, None, **attrs)
    return None if out is None else [out, (1,), (1,)]
