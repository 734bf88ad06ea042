"""Import rows of operators that read and write by indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....shape_mode import is_np_shape
from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value


@imports("Gather")
def gather(node: OnnxNode, x: Value, indices: Value) -> Any:
    """Take slices along an axis; negative indices count from its end."""
    axis = node.get("axis", 0) % x.rank
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
    places = indices.symbol
    if x.shape[axis] is not None:
        places = F.where(places < 0, places + x.shape[axis], places)
    return F.take(x.symbol, places, axis=axis, name=node.name)


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


def _coordinates(node: OnnxNode, indices: Value, axis: int, size: int | None) -> Any:
    """Return for each index the coordinates of its element: ``(axes, ...)``."""
    shape = indices.sizes
    places = F.cast(indices.symbol, dtype="int64")
    if size is not None:
        places = F.where(places < 0, places + size, places)
    rows = []
    for each, line in enumerate(np.indices(shape)):
        if each == axis:
            rows.append(F.expand_dims(places, axis=0))
        else:
            grid = line[None].astype(np.int64)
            rows.append(node.importer.constant(grid, f"{node.name}_grid{each}"))
    return rows[0] if len(rows) == 1 else F.concat(*rows, dim=0)


@imports("GatherElements")
def gather_elements(node: OnnxNode, x: Value, indices: Value) -> Any:
    """Take elements whose place along one axis is given."""
    axis = node.get("axis", 0) % x.rank
    places = _coordinates(node, indices, axis, x.shape[axis])
    return F.gather_nd(x.symbol, places, name=node.name)


@imports("GatherND")
def gather_nd(node: OnnxNode, x: Value, indices: Value) -> Any:
    """Take elements or slices at full or partial coordinates."""
    batch, rank = node.get("batch_dims", 0), indices.rank
    if indices.constant is not None and (indices.constant < 0).any():
        depth = indices.shape[-1]
        sizes = np.array(x.sizes[batch : batch + depth])
        fixed = np.where(indices.constant < 0, indices.constant + sizes, indices.constant)
        symbol = node.importer.constant(fixed, f"{node.name}_indices")
    else:
        symbol = indices.symbol
    places = F.transpose(symbol, axes=(rank - 1, *range(rank - 1)))
    if batch:
        shape = indices.sizes[:-1]
        grids = [
            node.importer.constant(line[None].astype(np.int64), f"{node.name}_grid{i}")
            for i, line in enumerate(np.indices(shape)[:batch])
        ]
        places = F.concat(*grids, F.cast(places, dtype="int64"), dim=0)
    return F.gather_nd(x.symbol, places, name=node.name)


def _scattered(node: OnnxNode, x: Value, places: Any, updates: Any) -> Any:
    """Write or combine updates at coordinates ``(axes, ...)``."""
    how = node.get("reduction", "none")
    if how == "none":
        return F._internal._scatter_set_nd(x.symbol, updates, places, shape=x.sizes)
    raise node.unsupported(f"with reduction={how!r} has no operator.")


@imports("ScatterElements", "Scatter")
def scatter_elements(node: OnnxNode, x: Value, indices: Value, updates: Value) -> Any:
    """Write elements whose place along one axis is given."""
    axis = node.get("axis", 0) % x.rank
    places = _coordinates(node, indices, axis, x.shape[axis])
    return _scattered(node, x, places, updates.symbol)


@imports("ScatterND")
def scatter_nd(node: OnnxNode, x: Value, indices: Value, updates: Value) -> Any:
    """Write elements or slices at coordinates."""
    rank = indices.rank
    places = F.transpose(indices.symbol, axes=(rank - 1, *range(rank - 1)))
    return _scattered(node, x, places, updates.symbol)


@imports("OneHot")
def one_hot(node: OnnxNode, indices: Value, depth: Value, values: Value) -> Any:
    """Vectors with one number on."""
    count = int(node.constant(depth, "depth").item())
    off, on = node.constant(values, "values").tolist()
    dtype = values.dtype.name
    places = F.cast(indices.symbol, dtype="int64")
    places = F.where(places < 0, places + count, places)
    hot = F.one_hot(places, depth=count, on_value=on, off_value=off, dtype=dtype)
    rank = indices.rank + 1
    axis = node.get("axis", -1) % rank
    order = [*range(axis), rank - 1, *range(axis, rank - 1)]
    return F.transpose(hot, axes=order, name=node.name)


@imports("Compress")
def compress(node: OnnxNode, x: Value, condition: Value) -> Any:
    """Keep slices whose condition holds."""
    chosen = np.flatnonzero(node.constant(condition, "condition"))
    axis = node.get("axis")
    symbol = x.symbol if axis is not None else F.reshape(x.symbol, shape=(-1,))
    places = node.importer.constant(chosen.astype(np.int64), f"{node.name}_indices")
    return F.take(symbol, places, axis=axis or 0, name=node.name)


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
    rows, columns = x.sizes[-2:]
    mask = np.tri(rows, columns, offset if not node.get("upper", 1) else offset - 1)
    mask = mask if not node.get("upper", 1) else 1 - mask
    dtype = "int32" if x.is_bool else x.dtype.name
    kept = node.importer.constant(mask.astype(dtype), f"{node.name}_mask")
    kept = F.reshape(kept, shape=(1,) * (x.rank - 2) + (rows, columns))
    if not x.is_float:
        symbol = F.cast(x.symbol, dtype=dtype)
        return F.cast(F.broadcast_mul(symbol, kept), dtype=x.dtype.name, name=node.name)
    wide = F.broadcast_to(kept, shape=x.sizes)
    return F.where(wide, x.symbol, F.zeros_like(x.symbol), name=node.name)
