"""Softmax, its logarithm and softmin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from ... import dtypes
from ...error import ShapeError
from ..declare import op
from ..shapes import Shape, same

FloatName = Literal["float16", "float32", "float64"]


def _along_axis(
    kernel: Callable, data: Tensor, axis: int, temperature: float | None, dtype: str | None
) -> Tensor:
    if temperature is not None and temperature != 1.0:
        data = data / temperature
    if dtype is None:
        return kernel(data, axis)
    wanted = dtypes.to_torch(dtype)
    if torch.promote_types(wanted, data.dtype) is wanted:
        return kernel(data, axis, wanted)
    return kernel(data, axis).to(wanted)  # a narrower type takes the finished result


def _within(data: Tensor, length: Tensor, axis: int) -> Tensor:
    """Return which elements along the axis stand before their row's length."""
    wanted = [n for i, n in enumerate(data.shape) if i != axis % data.ndim]
    if list(length.shape) != wanted:
        raise ShapeError(
            f"Shape inconsistent in softmax, Provided = {list(length.shape)}, "
            f"inferred shape={wanted} for the length of data {list(data.shape)} along axis {axis}."
        )
    size = [1] * data.ndim
    size[axis] = -1
    steps = torch.arange(data.shape[axis], device=data.device).reshape(size)
    return steps < length.unsqueeze(axis)


@op(
    "softmax",
    "_npx_softmax",
    optional={"length": lambda a: bool(a["use_length"])},
    types="T L -> @dtype",
    method=True,
    precision="full",
    names_single_input=True,
)
def softmax(
    data: Tensor,
    length: Tensor | None = None,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: FloatName | None = None,
    use_length: bool | None = False,
) -> Tensor:
    """Turn numbers along an axis into shares of 1: ``exp(x / t) / sum(exp(x / t))``.

    With `use_length` only the first `length` elements of each row take part; the rest are 0.

    Parameters
    ----------
    length
        Number of valid elements along the axis; the others become 0.
    axis
        The axis whose results sum to 1; a negative one counts from the last.
    dtype
        Data type of the result; by default that of the data.

    >>> mx.nd.softmax(mx.nd.array([[0, 0]])).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    if length is None:
        return _along_axis(torch.softmax, data, axis, temperature, dtype)
    within = _within(data, length, axis)
    lowest = torch.finfo(data.dtype).min
    out = _along_axis(torch.softmax, data.masked_fill(~within, lowest), axis, temperature, dtype)
    return out.masked_fill(~within, 0.0)


@softmax.infer_inputs
def softmax_inputs(
    data: Shape | None, length: Shape | None, *, axis: int, use_length: bool | None, **_: object
) -> dict[str, Shape] | None:
    """The lengths have the shape of data without the axis."""
    if data is None or not use_length:
        return None
    axis %= len(data)
    return {"length": data[:axis] + data[axis + 1 :]}


@softmax.infer_outputs
def softmax_output(data: Shape | None, length: Shape | None, **_: object) -> Shape | None:
    """The result is like data."""
    return data


@op(
    "log_softmax",
    "_npx_log_softmax",
    shape=same,
    types="T -> @dtype",
    method=True,
    precision="full",
    names_single_input=True,
)
def log_softmax(
    data: Tensor,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: FloatName | None = None,
    use_length: bool | None = False,
) -> Tensor:
    """Return the logarithm of `softmax`, computed without loss of digits.

    Parameters
    ----------
    axis
        The axis whose exponentials sum to 1; a negative one counts from the last.
    dtype
        Data type of the result; by default that of the data.
    use_length
        Accepted for compatibility, without effect.

    >>> mx.nd.log_softmax(mx.nd.array([[0, 0]])).asnumpy()
    array([[-0.6931472, -0.6931472]], dtype=float32)
    """
    return _along_axis(torch.log_softmax, data, axis, temperature, dtype)


@op("softmin", shape=same, types="T -> @dtype", method=True, precision="full")
def softmin(
    data: Tensor,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: FloatName | None = None,
    use_length: bool | None = False,
) -> Tensor:
    """Return the softmax of the negative: the smallest number gets the largest share.

    Parameters
    ----------
    axis
        The axis whose results sum to 1; a negative one counts from the last.
    dtype
        Data type of the result; by default that of the data.
    use_length
        Accepted for compatibility, without effect.

    >>> mx.nd.softmin(mx.nd.array([[1, 1]])).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    return _along_axis(torch.softmax, -data, axis, temperature, dtype)


@op("SoftmaxActivation", shape=same, precision="full")
def softmax_activation(
    data: Tensor, *, mode: Literal["channel", "instance"] = "instance"
) -> Tensor:
    """Apply softmax to the last axis of each sample, or over channels at each position.

    Parameters
    ----------
    mode
        ``'instance'`` for each sample, ``'channel'`` over axis 1 at each position.

    >>> mx.nd.SoftmaxActivation(mx.nd.array([[1, 1]])).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    return torch.softmax(data, 1 if mode == "channel" else -1)
