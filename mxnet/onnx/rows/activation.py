"""Rows of activation functions and softmax."""

from __future__ import annotations

import math

import numpy as np
import torch

from ... import dtypes
from ..builder import INT64, UNKNOWN, Builder, Call
from ..table import row

ACTIVATIONS = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "softrelu": "Softplus",
    "softsign": "Softsign",
    "tanh": "Tanh",
}


@row("Activation")
def activation(g: Builder, call: Call, x: str) -> str:
    """Apply the function that `act_type` names."""
    return g.add(ACTIVATIONS[call.attrs["act_type"]], x)


def gelu(g: Builder, call: Call, x: str) -> str:
    """``x Phi(x)``; one operator from opset 20 on."""
    if g.opset >= 20:
        return g.Gelu(x)
    erf = g.Erf(g.Mul(x, g.scalar(math.sqrt(0.5), call.dtype)))
    half = g.Mul(x, g.scalar(0.5, call.dtype))
    return g.Mul(half, g.Add(erf, g.scalar(1, call.dtype)))


def _prelu(g: Builder, call: Call, x: str, gamma: str) -> str:
    # MXNet has a slope for each channel; ONNX matches axes from the back.
    if len(call.shapes[1]) == 1 and call.ndim > 2:
        gamma = g.reshape(gamma, [-1, *[1] * (call.ndim - 2)])
    return g.PRelu(x, gamma)


@row("LeakyReLU")
def leaky_relu(g: Builder, call: Call, x: str, gamma: str = "") -> str | list[str]:
    """Let a little of the negative side through."""
    kind, slope = call.attrs["act_type"], call.attrs["slope"]
    if kind == "prelu":
        return _prelu(g, call, x, gamma)
    if kind == "rrelu":
        middle = (call.attrs["lower_bound"] + call.attrs["upper_bound"]) / 2
        mask = g.Expand(g.scalar(0, call.dtype), g.sizes(x, call.shape))
        return [g.LeakyRelu(x, alpha=middle), mask]
    if kind == "gelu":
        return gelu(g, call, x)
    if kind == "selu":
        return g.Selu(x)
    return g.add("Elu" if kind == "elu" else "LeakyRelu", x, alpha=slope)


def _softmax(g: Builder, op_type: str, x: str, axis: int, rank: int) -> str:
    if g.opset >= 13 or axis == rank - 1:
        return g.add(op_type, x, axis=axis)
    order = [i for i in range(rank) if i != axis] + [axis]
    made = g.add(op_type, g.Transpose(x, perm=order), axis=rank - 1)
    return g.Transpose(made, perm=[int(i) for i in np.argsort(order)])


def _along(g: Builder, call: Call, op_type: str, x: str) -> str:
    temperature, wanted = call.attrs["temperature"], call.out_dtypes[0]
    if temperature is not None and temperature != 1.0:
        x = g.Div(x, g.scalar(temperature, call.dtype))
    name = call.attrs["dtype"]
    inner = call.dtype
    if name is not None:
        asked = dtypes.to_torch(name)
        if torch.promote_types(asked, inner) is asked:
            x, inner = g.cast(x, inner, asked), asked
    made = _softmax(g, op_type, x, call.attrs["axis"] % call.ndim, call.ndim)
    return g.cast(made, inner, wanted)


@row("softmax")
def softmax(g: Builder, call: Call, x: str, length: str = "") -> str:
    """Shares of 1 along an axis, of the first `length` elements if that is given."""
    if not length:
        return _along(g, call, "Softmax", x)
    axis = call.attrs["axis"] % call.ndim
    inside = _inside(g, call, x, length, axis)
    lowest = g.scalar(torch.finfo(call.dtype).min, call.dtype)
    made = _along(g, call, "Softmax", g.Where(inside, x, lowest))
    return g.Where(inside, made, g.scalar(0, call.out_dtypes[0]))


def _inside(g: Builder, call: Call, x: str, length: str, axis: int) -> str:
    if call.shape[axis] == UNKNOWN:
        size = g.squeeze(g.size_of(x, axis), 0)
        zero, one = (g.array(np.array(n, np.int64)) for n in (0, 1))
        steps = g.Range(zero, size, one)
    else:
        steps = g.array(np.arange(call.shape[axis], dtype=np.int64))
    steps = g.reshape(steps, [-1, *[1] * (call.ndim - 1 - axis)])
    ends = g.unsqueeze(g.cast(length, call.dtypes[1], INT64), axis)
    return g.Less(steps, ends)


@row("log_softmax")
def log_softmax(g: Builder, call: Call, x: str) -> str:
    """Logarithm of softmax."""
    return _along(g, call, "LogSoftmax", x)


@row("softmin")
def softmin(g: Builder, call: Call, x: str) -> str:
    """Softmax of the negative."""
    return _along(g, call, "Softmax", g.Neg(x))


@row("SoftmaxActivation")
def softmax_activation(g: Builder, call: Call, x: str) -> str:
    """Softmax of the last axis, or over channels."""
    axis = 1 if call.attrs["mode"] == "channel" else call.ndim - 1
    return _softmax(g, "Softmax", x, axis, call.ndim)


@row("SoftmaxOutput", ignores=("label",))
def softmax_output(g: Builder, call: Call, x: str, *_: str) -> str:
    """Softmax of the data; the label is for training."""
    if call.attrs["multi_output"]:
        return _softmax(g, "Softmax", x, 1, call.ndim)
    if call.attrs["preserve_shape"] or call.ndim == 2:
        return _softmax(g, "Softmax", x, call.ndim - 1, call.ndim)
    flat = _softmax(g, "Softmax", g.Flatten(x, axis=1), 1, 2)
    return g.Reshape(flat, g.sizes(x, call.shape))
