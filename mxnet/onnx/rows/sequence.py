"""Rows of operators on sequences of different lengths."""

from __future__ import annotations

import numpy as np

from ..builder import INT64, UNKNOWN, Builder, Call
from ..table import row


def _steps(g: Builder, call: Call, x: str, axis: int) -> str:
    """Return the time steps ``0, 1, ...`` as a vector."""
    if call.shape[axis] != UNKNOWN:
        return g.array(np.arange(call.shape[axis], dtype=np.int64))
    size = g.squeeze(g.size_of(x, axis), 0)
    zero, one = (g.array(np.array(n, np.int64)) for n in (0, 1))
    return g.Range(zero, size, one)


@row("SequenceMask")
def sequence_mask(g: Builder, call: Call, x: str, lengths: str = "") -> str:
    """Replace what lies behind the end of each sequence."""
    if not lengths:
        return g.Identity(x)
    axis = call.attrs["axis"]
    steps = g.unsqueeze(_steps(g, call, x, axis), 1 - axis)
    ends = g.unsqueeze(g.cast(lengths, call.dtypes[1], INT64), axis)
    inside = g.Less(steps, ends)
    if call.ndim > 2:
        inside = g.unsqueeze(inside, *range(2, call.ndim))
    return g.Where(inside, x, g.scalar(call.attrs["value"], call.dtype))


@row("SequenceLast")
def sequence_last(g: Builder, call: Call, x: str, lengths: str = "") -> str:
    """Take the last element of each sequence."""
    axis = call.attrs["axis"]
    if not lengths:
        return g.Gather(x, g.array(np.array(-1, np.int64)), axis=axis)
    last = g.Sub(g.cast(lengths, call.dtypes[1], INT64), g.ints(1))
    last = g.unsqueeze(g.Max(last, g.ints(0)), 1)
    if axis == 0:
        x = g.Transpose(x, perm=[1, 0, *range(2, call.ndim)])
    return g.GatherND(x, last, batch_dims=1)


@row("SequenceReverse")
def sequence_reverse(g: Builder, call: Call, x: str, lengths: str = "") -> str:
    """Reverse each sequence in time."""
    axis = call.attrs["axis"]
    if not lengths:
        return g.slice(x, [-1], [-(2**62)], [axis], [-1])
    ends = g.cast(lengths, call.dtypes[1], INT64)
    return g.ReverseSequence(x, ends, time_axis=axis, batch_axis=1 - axis)
