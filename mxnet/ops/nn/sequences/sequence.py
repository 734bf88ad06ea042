"""Operators on batches of sequences of different lengths.

Time is the first axis and the batch the second, or the other way round with ``axis=1``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ....error import ShapeError
from ...attributes import Shape
from ...declare import op
from ...families import number
from ...shapes import Shapes, unify

_GIVEN = {"sequence_length": lambda a: a["use_sequence_length"]}


def _check(name: str, data: Shape, axis: int, axes: tuple[int, ...] = (0, 1)) -> None:
    if axis not in axes:
        raise ShapeError(f"{name}: axis must be {' or '.join(map(str, axes))}, but is {axis}.")
    if len(data) < 2:
        raise ShapeError(f"{name}: the data array must be of rank 2 or greater, not {list(data)}.")


def _lengths(name: str, data: Tensor, lengths: Tensor, axis: int) -> Tensor:
    if lengths.shape != data.shape[1 - axis : 2 - axis]:
        raise ShapeError(
            f"Shape inconsistent in {name}: sequence_length is {list(lengths.shape)}, but data "
            f"{list(data.shape)} with axis={axis} needs {[data.shape[1 - axis]]}."
        )
    return lengths.long()


def _with_lengths(ins: Shapes, axis: int) -> Shapes:
    """Infer the shape of the lengths from the batch, and the other way round."""
    if len(ins) == 1 or ins[0] is None:
        return list(ins)
    batch = unify((ins[0][1 - axis],), ins[1], "sequence_length: shapes")
    data = list(ins[0])
    data[1 - axis] = batch[0]
    return [tuple(data), batch]


def _same_as_data(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data = unify(ins[0], outs[0], "the output")
    if data is None:
        return ins, outs
    ins = _with_lengths([data, *ins[1:]], attrs["axis"])
    return ins, [ins[0]]


@op(
    "SequenceMask",
    "_npx_sequence_mask",
    optional=_GIVEN,
    shape=_same_as_data,
    types="T L -> T",
    names_single_input=True,
    gradients_by_input=True,
)
def sequence_mask(
    data: Tensor,
    sequence_length: Tensor | None = None,
    *,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
) -> Tensor:
    """Set all elements behind the end of each sequence to ``value``.

    Parameters
    ----------
    data
        Sequences of shape ``(time, batch, ...)``, or ``(batch, time, ...)`` with ``axis=1``.
    value
        Number to put behind the end.
    axis
        The axis of time, 0 or 1.

    >>> x, lengths = mx.nd.ones((2, 2)), mx.nd.array([1, 2])
    >>> mx.nd.SequenceMask(x, lengths, use_sequence_length=True).asnumpy()
    array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    _check("SequenceMask", data.shape, axis)
    if sequence_length is None:
        return data.clone()
    lengths = _lengths("SequenceMask", data, sequence_length, axis)
    time = torch.arange(data.shape[axis], device=data.device)
    behind = time.unsqueeze(1 - axis) >= lengths.unsqueeze(axis)
    behind = behind.reshape(*behind.shape, *(1,) * (data.ndim - 2))
    return data.masked_fill(behind, number(value, data.dtype))


@op(
    "SequenceLast",
    optional=_GIVEN,
    types="T L -> T",
    names_single_input=True,
    gradients_by_input=True,
)
def sequence_last(
    data: Tensor,
    sequence_length: Tensor | None = None,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> Tensor:
    """Take the last element of each sequence.

    Parameters
    ----------
    data
        Sequences of shape ``(time, batch, ...)``, or ``(batch, time, ...)`` with ``axis=1``.
    axis
        The axis of time, 0 or 1.

    >>> x, lengths = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 2])
    >>> mx.nd.SequenceLast(x, lengths, use_sequence_length=True).asnumpy()
    array([1., 4.], dtype=float32)
    """
    _check("SequenceLast", data.shape, axis)
    if sequence_length is None:
        return data.select(axis, -1).clone()
    last = _lengths("SequenceLast", data, sequence_length, axis) - 1
    last = last.clamp_(0, data.shape[axis] - 1)
    batch = torch.arange(data.shape[1 - axis], device=data.device)
    return data[(last, batch) if axis == 0 else (batch, last)]


def _last_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    if ins[0] is None:
        return ins, outs
    axis = attrs["axis"]
    _check("SequenceLast", ins[0], axis)
    ins = _with_lengths(ins, axis)
    data = ins[0]
    assert data is not None
    return ins, [unify((data[1 - axis], *data[2:]), outs[0], "the output")]


sequence_last.shape_rule = _last_shapes


@op(
    "SequenceReverse",
    optional=_GIVEN,
    shape=_same_as_data,
    types="T L -> T",
    names_single_input=True,
    gradients_by_input=True,
)
def sequence_reverse(
    data: Tensor,
    sequence_length: Tensor | None = None,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> Tensor:
    """Turn each sequence around; what is behind its end stays where it is.

    Parameters
    ----------
    data
        Sequences of shape ``(time, batch, ...)``.
    axis
        The axis of time; only 0.

    >>> x, lengths = mx.nd.array([[1, 2], [3, 4]]), mx.nd.array([1, 2])
    >>> mx.nd.SequenceReverse(x, lengths, use_sequence_length=True).asnumpy()
    array([[1., 4.],
           [3., 2.]], dtype=float32)
    """
    _check("SequenceReverse", data.shape, axis, (0,))
    if sequence_length is None:
        return data.flip(0)
    lengths = _lengths("SequenceReverse", data, sequence_length, 0).clamp(max=data.shape[0])
    time = torch.arange(data.shape[0], device=data.device).unsqueeze(1)
    source = torch.where(time < lengths, lengths - 1 - time, time)
    return data[source, torch.arange(data.shape[1], device=data.device)]
