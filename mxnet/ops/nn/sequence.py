"""Sequence layers: masks, reversal, and transformer attention.

Sequences of different lengths are padded. Attention uses interleaved projections ``(length, batch,
heads * parts * size)``: queries, keys and values head by head.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Shape
from ..declare import op
from ..families import number
from ..shapes import UNKNOWN, Shapes, unify
from ..tensor.identity import in_row_order

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
    """Infer the shape of the lengths from the batch size, and vice versa."""
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
    names_output=True,
)
def sequence_mask(
    data: Tensor,
    sequence_length: Tensor | None = None,
    *,
    use_sequence_length: bool = False,
    value: float = 0.0,
    axis: int = 0,
) -> Tensor:
    """Set all elements beyond the length of each sequence to ``value``.

    Parameters
    ----------
    data
        Sequences of shape ``(time, batch, ...)``, or ``(batch, time, ...)`` with ``axis=1``.
    value
        Value of masked elements.
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
    names_output=True,
)
def sequence_last(
    data: Tensor,
    sequence_length: Tensor | None = None,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> Tensor:
    """Return the last valid element of each sequence.

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
    names_output=True,
)
def sequence_reverse(
    data: Tensor,
    sequence_length: Tensor | None = None,
    *,
    use_sequence_length: bool = False,
    axis: int = 0,
) -> Tensor:
    """Reverse each sequence within its length; the padding is unchanged.

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


def heads_of(name: str, projected: Tensor, heads: int, parts: int) -> Tensor:
    """Return ``(length, batch * heads, parts, size)``.

    Split the parts by `unbind`: indexing would fill an array of zeros for the gradient of each
    part.
    """
    length, batch, width = projected.shape
    if heads <= 0 or width % (heads * parts):
        raise ShapeError(
            f"Shape inconsistent in {name}: the last axis of {list(projected.shape)} must be a "
            f"multiple of heads * {parts} = {heads * parts}."
        )
    return projected.reshape(length, batch * heads, parts, width // (heads * parts))


def _scores(queries: Tensor, keys: Tensor) -> Tensor:
    scaled = queries.transpose(0, 1) * (queries.shape[-1] ** -0.5)
    return torch.bmm(scaled, keys.permute(1, 2, 0))


def _attend(attention: Tensor, values: Tensor, heads: int) -> Tensor:
    out = torch.bmm(attention, values.transpose(0, 1)).transpose(0, 1)
    length, _, size = out.shape
    return out.reshape(length, -1, heads * size)


@op("_contrib_interleaved_matmul_selfatt_qk", precision="widest", names_output=True)
def interleaved_matmul_selfatt_qk(queries_keys_values: Tensor, *, heads: int) -> Tensor:
    """Compute ``Q K^T / sqrt(size)`` of each head, of shape ``(batch * heads, length, length)``.

    >>> x = mx.nd.ones((2, 1, 3 * 4))
    >>> mx.nd.contrib.interleaved_matmul_selfatt_qk(x, heads=1).asnumpy()
    array([[[2., 2.],
            [2., 2.]]], dtype=float32)
    """
    name = "_contrib_interleaved_matmul_selfatt_qk"
    qkv = heads_of(name, queries_keys_values, heads, 3)
    queries, keys, _ = qkv.unbind(2)
    return _scores(queries, keys)


@in_row_order
@op("_contrib_interleaved_matmul_selfatt_valatt", precision="widest", names_output=True)
def interleaved_matmul_selfatt_valatt(
    queries_keys_values: Tensor, attention: Tensor, *, heads: int
) -> Tensor:
    """Compute the attention-weighted values, of shape ``(length, batch, heads * size)``.

    >>> x, weights = mx.nd.ones((2, 1, 3)), mx.nd.array([[[0.5, 0.5], [1, 0]]])
    >>> mx.nd.contrib.interleaved_matmul_selfatt_valatt(x, weights, heads=1).asnumpy().ravel()
    array([1., 1.], dtype=float32)
    """
    name = "_contrib_interleaved_matmul_selfatt_valatt"
    qkv = heads_of(name, queries_keys_values, heads, 3)
    return _attend(attention, qkv.unbind(2)[2], heads)


@op("_contrib_interleaved_matmul_encdec_qk", precision="widest", names_output=True)
def interleaved_matmul_encdec_qk(queries: Tensor, keys_values: Tensor, *, heads: int) -> Tensor:
    """Compute scaled scores of the decoder's queries and the encoder's keys.

    Parameters
    ----------
    queries
        Projections of the decoder, of shape ``(length, batch, heads * size)``.

    >>> q, kv = mx.nd.ones((1, 1, 4)), mx.nd.ones((2, 1, 8))
    >>> mx.nd.contrib.interleaved_matmul_encdec_qk(q, kv, heads=1).asnumpy()
    array([[[2., 2.]]], dtype=float32)
    """
    name = "_contrib_interleaved_matmul_encdec_qk"
    q, kv = heads_of(name, queries, heads, 1), heads_of(name, keys_values, heads, 2)
    return _scores(q.squeeze(2), kv.unbind(2)[0])


@in_row_order
@op("_contrib_interleaved_matmul_encdec_valatt", precision="widest", names_output=True)
def interleaved_matmul_encdec_valatt(
    keys_values: Tensor, attention: Tensor, *, heads: int
) -> Tensor:
    """Compute the encoder's values weighted by the decoder's attention.

    >>> kv, weights = mx.nd.ones((2, 1, 2)), mx.nd.array([[[0.25, 0.5]]])
    >>> mx.nd.contrib.interleaved_matmul_encdec_valatt(kv, weights, heads=1).asnumpy()
    array([[[0.75]]], dtype=float32)
    """
    name = "_contrib_interleaved_matmul_encdec_valatt"
    kv = heads_of(name, keys_values, heads, 2)
    return _attend(attention, kv.unbind(2)[1], heads)


def _times(size: int, factor: int) -> int:
    return UNKNOWN if size == UNKNOWN else size * factor


def _divide(size: int, parts: int) -> int:
    return UNKNOWN if size == UNKNOWN else size // parts


@interleaved_matmul_selfatt_qk.infer_outputs
def selfatt_qk_shape(qkv: Shape | None, *, heads: int) -> Shape | None:
    """One square matrix per head."""
    return None if qkv is None else (_times(qkv[1], heads), qkv[0], qkv[0])


@interleaved_matmul_selfatt_valatt.infer_outputs
def selfatt_valatt_shape(qkv: Shape | None, attention: Shape | None, *, heads: int) -> Shape | None:
    """The values' third of the projections."""
    return None if qkv is None else (qkv[0], qkv[1], _divide(qkv[2], 3))


@interleaved_matmul_encdec_qk.infer_outputs
def encdec_qk_shape(queries: Shape | None, kv: Shape | None, *, heads: int) -> Shape | None:
    """One (queries, keys) matrix per head."""
    if queries is None or kv is None:
        return None
    return (_times(queries[1], heads), queries[0], kv[0])


@interleaved_matmul_encdec_valatt.infer_outputs
def encdec_valatt_shape(kv: Shape | None, attention: Shape | None, *, heads: int) -> Shape | None:
    """The length of the queries, and the values' half of the projections."""
    if kv is None or attention is None:
        return None
    return (attention[1], kv[1], _divide(kv[2], 2))
