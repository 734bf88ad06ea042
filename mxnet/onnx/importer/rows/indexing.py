"""Import rows of operators that read and write by indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....base import is_np_shape
from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value
from .axes import axis_within
from .creation import MAX_ELEMENTS

internal: Any = F._internal


@imports("Gather")
def gather(node: OnnxNode, x: Value, indices: Value) -> Any:
    """Take slices along an axis; negative indices count from its end."""
    axis = axis_within(node.get("axis", 0), x.rank)
    if indices.constant is not None:
        places = indices.constant
        if (places < 0).any():
            places = np.where(places < 0, places + x.sizes[axis], places)
        if places.ndim == 0:
            at = int(places)
            made = F.slice_axis(x.symbol, axis=axis, begin=at, end=at + 1)
            return F.reshape(made, shape=_without(x, axis), name=node.name)
        chosen = node.importer.constant(places, f"{node.name}_indices")
        return F.take(x.symbol, chosen, axis=axis, name=node.name)
    made = internal._onnx_gather(x.symbol, indices.symbol, axis=axis, name=node.name)
    if indices.shape == () and not is_np_shape():  # numbers without axes have one here
        return F.squeeze(made, axis=axis) if x.rank > 1 else made
    return made


def _without(x: Value, axis: int) -> tuple[int, ...]:
    """Return MXNet's codes for a shape without one axis of size 1."""
    rank = x.rank
    if rank == 1:
        return () if is_np_shape() else (1,)
    codes = [0] * rank
    if axis < rank - 1:
        codes[axis] = -3  # joins this axis, of size 1, with the next
        del codes[axis + 1]
    else:
        codes = [0] * (rank - 2) + [-3]
    return tuple(codes)


@imports("GatherElements")
def gather_elements(node: OnnxNode, x: Value, indices: Value) -> Any:
    """Take elements whose place along one axis is given."""
    axis = node.get("axis", 0)
    return internal._onnx_gather_elements(x.symbol, indices.symbol, axis=axis, name=node.name)


@imports("GatherND")
def gather_nd(node: OnnxNode, x: Value, indices: Value) -> Any:
    """Take elements or slices at full or partial coordinates."""
    return internal._onnx_gather_nd(
        x.symbol, indices.symbol, batch_dims=node.get("batch_dims", 0), name=node.name
    )


@imports("ScatterElements", "Scatter")
def scatter_elements(node: OnnxNode, x: Value, indices: Value, updates: Value) -> Any:
    """Write or combine elements whose place along one axis is given."""
    return internal._onnx_scatter_elements(
        x.symbol,
        indices.symbol,
        updates.symbol,
        axis=node.get("axis", 0),
        reduction=node.get("reduction", "none"),
        name=node.name,
    )


@imports("ScatterND")
def scatter_nd(node: OnnxNode, x: Value, indices: Value, updates: Value) -> Any:
    """Write or combine elements or slices at coordinates."""
    how = node.get("reduction", "none")
    return internal._onnx_scatter_nd(
        x.symbol, indices.symbol, updates.symbol, reduction=how, name=node.name
    )


@imports("OneHot")
def one_hot(node: OnnxNode, indices: Value, depth: Value, values: Value) -> Any:
    """Vectors with one number on."""
    count = int(node.constant(depth, "depth").item())
    known = [n for n in indices.shape or () if n is not None]
    if count * math.prod(known) > MAX_ELEMENTS:
        raise node.unsupported(f"with a depth of {count} makes too many elements.")
    off, on = node.constant(values, "values").tolist()
    dtype = values.dtype.name
    places = F.cast(indices.symbol, dtype="int64")
    places = F.where(places < 0, places + count, places)
    hot = F.one_hot(places, depth=count, on_value=on, off_value=off, dtype=dtype)
    rank = indices.rank + 1
    axis = axis_within(node.get("axis", -1), rank)
    order = [*range(axis), rank - 1, *range(axis, rank - 1)]
    return F.transpose(hot, axes=order, name=node.name)


@imports("Compress")
def compress(node: OnnxNode, x: Value, condition: Value) -> Any:
    """Keep slices whose condition holds."""
    return internal._onnx_compress(
        x.symbol, condition.symbol, axis=node.get("axis"), name=node.name
    )


@imports("NonZero")
def nonzero(node: OnnxNode, x: Value) -> Any:
    """Coordinates of elements that are not 0."""
    return internal._onnx_nonzero(x.symbol, name=node.name)


@imports("Unique")
def unique(node: OnnxNode, x: Value) -> Any:
    """Distinct elements, their first places, the place of each, and counts."""
    made = internal._onnx_unique(
        x.symbol, axis=node.get("axis"), is_sorted=bool(node.get("sorted", 1)), name=node.name
    )
    return [made[i] for i in range(len(node.output_names))]


@imports("ReverseSequence")
def reverse_sequence(node: OnnxNode, x: Value, lengths: Value) -> Any:
    """Reverse each sequence in time."""
    time, batch = node.get("time_axis", 0), node.get("batch_axis", 1)
    symbol = x.symbol if (time, batch) == (0, 1) else F.swapaxes(x.symbol, dim1=0, dim2=1)
    ends = F.cast(lengths.symbol, dtype="int32")
    made = F.SequenceReverse(symbol, ends, use_sequence_length=True)
    return made if (time, batch) == (0, 1) else F.swapaxes(made, dim1=0, dim2=1)


@imports("Trilu")
def trilu(node: OnnxNode, x: Value, k: Value | None = None) -> Any:
    """The upper or lower triangle."""
    offset = 0 if k is None else int(node.constant(k, "k").item())
    return internal._onnx_trilu(
        x.symbol, k=offset, upper=bool(node.get("upper", 1)), name=node.name
    )
