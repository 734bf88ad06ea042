"""Activation functions and softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ... import dtypes
from ...error import ShapeError
from ..declare import Epilogue, OpContext, op
from ..shapes import Shape, Shapes, same, unify
from ..tensor.elementwise import relu_into

ACTIVATIONS = {
    "relu": torch.relu,
    "sigmoid": torch.sigmoid,
    "softrelu": F.softplus,
    "softsign": F.softsign,
    "tanh": torch.tanh,
}


@op(
    "Activation",
    "_npx_activation",
    shape=same,
    full_precision_when={"act_type": ("softrelu",)},
    keeps_finite=True,
    pointwise=True,
    names_output=True,
    repeatable=True,
)
def activation(
    data: Tensor, *, act_type: Literal["relu", "sigmoid", "softrelu", "softsign", "tanh"]
) -> Tensor:
    """Apply an activation function; ``softrelu`` is ``log(1 + exp(x))``.

    Parameters
    ----------
    act_type
        The function: ``relu``, ``sigmoid``, ``softrelu``, ``softsign`` or ``tanh``.

    >>> mx.nd.Activation(mx.nd.array([-1, 3]), act_type="softsign").asnumpy()
    array([-0.5 ,  0.75], dtype=float32)
    """
    return ACTIVATIONS[act_type](data)


INTO = {"relu": relu_into, "sigmoid": torch.sigmoid, "tanh": torch.tanh}
IN_PLACE = {"relu": torch.relu_, "sigmoid": torch.sigmoid_, "tanh": torch.tanh_}


@activation.variant("node")
def activation_function(attrs: dict, differentiable: bool) -> Callable[[Tensor], Tensor]:
    """Return torch's function."""
    return ACTIVATIONS[attrs["act_type"]]


@activation.variant("out")
def activation_into(attrs: dict, dtype: torch.dtype) -> Callable[..., Tensor] | None:
    """Return torch's function that writes into `out`."""
    return INTO.get(attrs["act_type"])


@activation.variant("in_place")
def activation_in_place(attrs: dict) -> Callable[[Tensor], Tensor] | None:
    """Return torch's function that writes over its input."""
    return IN_PLACE.get(attrs["act_type"])


@activation.epilogue
def activation_epilogue(attrs: dict) -> Epilogue | None:
    """Return the activations that fused operators support."""
    name = attrs["act_type"]
    return Epilogue(name) if name in IN_PLACE else None


SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772


class _Selu(torch.autograd.Function):
    """Selu with MXNet's gradient below 0: ``scale * (out + alpha)``, its scale applied twice."""

    @staticmethod
    def forward(ctx: Any, data: Tensor) -> Tensor:
        out = torch.selu(data)
        ctx.save_for_backward(data, out)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:
        (grad,), (data, out) = grads, ctx.saved_tensors
        below = (out + SELU_ALPHA) * SELU_SCALE
        return grad * torch.where(data > 0, SELU_SCALE, below)


def _prelu(data: Tensor, gamma: Tensor) -> Tensor:
    """Return prelu with slopes by channel (C,), by sample (N,), both (N, C), or for all (1,)."""
    head = tuple(data.shape[: min(gamma.ndim, 2)])
    if data.ndim > 1 and gamma.ndim == 1:
        if gamma.numel() in (1, data.shape[1]):
            return torch.prelu(data, gamma)
        gamma, head = gamma.unsqueeze(1), (data.shape[0], 1)
    fits = 0 < gamma.ndim <= min(2, data.ndim) and all(
        own in (1, size) for own, size in zip(gamma.shape, head, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"LeakyReLU: gamma of prelu is one number, or numbers of the first two axes of data "
            f"{list(data.shape)}, got shape {list(gamma.shape)}."
        )
    slopes = gamma.reshape(*gamma.shape, *[1] * (data.ndim - gamma.ndim))
    return torch.where(data > 0, data, data * slopes)


LEAKY = {
    "leaky": lambda data, slope: F.leaky_relu(data, slope),
    "elu": lambda data, slope: F.elu(data, slope),
    "selu": lambda data, slope: _Selu.apply(data),
    "gelu": lambda data, slope: F.gelu(data),
}


def _leaky_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data = ins[0]
    for out in outs:
        data = unify(data, out, "data and output of LeakyReLU")
    outs = [data] * len(outs)
    if len(ins) == 1:
        return [data], outs
    gamma: Shape | None = ins[1]
    # gamma may have shape (1,), so its shape is inferred only if it is unknown.
    if gamma is None and data is not None:
        gamma = data[1:2] or data
    return [data, gamma], outs


@op(
    "LeakyReLU",
    "_npx_leaky_relu",
    optional={"gamma": lambda a: a["act_type"] == "prelu"},
    outputs=lambda a: ("output", "mask") if a["act_type"] == "rrelu" else ("output",),
    shape=_leaky_shapes,
    input_init={"gamma": '["Constant", {"value": 0.25}]'},
    full_precision_when={"act_type": ("elu", "selu")},
    random=True,
    names_single_input=True,
)
def leaky_relu(
    data: Tensor,
    gamma: Tensor | None = None,
    *,
    act_type: Literal["elu", "gelu", "leaky", "prelu", "rrelu", "selu"] = "leaky",
    slope: float = 0.25,
    lower_bound: float = 0.125,
    upper_bound: float = 0.334,
    run: OpContext,
) -> Tensor | tuple[Tensor, Tensor]:
    """Apply a leaky ReLU or a related activation function; ``prelu`` learns its slopes.

    ``rrelu`` draws a random slope for each element in training and uses the mean of its bounds
    otherwise; its second output has the slopes (zeros if none were drawn).

    Parameters
    ----------
    gamma
        Slopes of ``prelu``: one for all, one for each channel, or of shape (batch, channels).
    act_type
        Function: ``leaky`` or ``elu`` (with `slope`), ``prelu`` (learned slope), ``rrelu`` (random
        slope), ``selu`` or ``gelu``.
    slope
        Slope of the negative side (``leaky``), or factor of ``exp(x) - 1`` (``elu``).
    lower_bound
        Lower bound of the random slopes of ``rrelu``.
    upper_bound
        Upper bound of the random slopes of ``rrelu``; inference uses the mean of both bounds.

    >>> mx.nd.LeakyReLU(mx.nd.array([-4, 4]), slope=0.5).asnumpy()
    array([-2.,  4.], dtype=float32)
    """
    if act_type == "prelu":
        assert gamma is not None  # `optional` requires it
        return _prelu(data, gamma)
    if act_type != "rrelu":
        return LEAKY[act_type](data, slope)
    if not run.training:
        middle = (lower_bound + upper_bound) / 2
        return F.leaky_relu(data, middle), torch.zeros_like(data)
    drawn = torch.empty_like(data).uniform_(lower_bound, upper_bound)
    return torch.where(data > 0, data, data * drawn), drawn


def _gelu_in_place(data: Tensor) -> Tensor:
    return LEAKY["gelu"](data, 0.0) if data.requires_grad else torch.ops.aten.gelu_(data)


@leaky_relu.epilogue
def leaky_relu_epilogue(attrs: dict) -> Epilogue | None:
    """Return the form with a fixed slope."""
    return Epilogue("leaky", (attrs["slope"],)) if attrs["act_type"] == "leaky" else None


@leaky_relu.variant("in_place")
def leaky_relu_in_place(attrs: dict) -> Callable[[Tensor], Tensor] | None:
    """Return the form with a fixed slope, or GELU if no gradient needs its input.

    With a negative slope, the sign of the input cannot be recovered from the result.
    """
    if attrs["act_type"] == "gelu":
        return _gelu_in_place
    slope = attrs["slope"]
    if attrs["act_type"] != "leaky" or slope < 0:
        return None
    return lambda data: F.leaky_relu_(data, slope)


FloatName = Literal["float16", "float32", "float64"]


def _along_axis(
    kernel: Callable, data: Tensor, axis: int, temperature: float | None, dtype: str | None
) -> Tensor:
    if temperature is not None and temperature != 1.0:
        data = data / temperature
    if dtype is None:
        return kernel(data, axis)
    target = dtypes.to_torch(dtype)
    if torch.promote_types(target, data.dtype) is target:
        return kernel(data, axis, target)
    return kernel(data, axis).to(target)  # narrower types are converted at the end


def _within(data: Tensor, length: Tensor, axis: int) -> Tensor:
    """Return a mask of the elements within the length of their row."""
    target = [n for i, n in enumerate(data.shape) if i != axis % data.ndim]
    if list(length.shape) != target:
        raise ShapeError(
            f"Shape inconsistent in softmax, Provided = {list(length.shape)}, "
            f"inferred shape={target} for the length of data {list(data.shape)} along axis {axis}."
        )
    size = [1] * data.ndim
    size[axis] = -1
    steps = torch.arange(data.shape[axis], device=data.device).reshape(size)
    return steps < length.unsqueeze(axis)


@op(
    "softmax",
    "_npx_softmax",
    optional={"length": lambda a: bool(a["use_length"])},
    without_gradient=("length",),
    types="T L -> @dtype",
    method=True,
    precision="full",
    names_single_input=True,
    names_output=True,
    repeatable=True,
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
    """Compute the softmax along an axis: ``exp(x / t) / sum(exp(x / t))``.

    With `use_length` only the first `length` elements of each row are used; the others become 0.

    Parameters
    ----------
    length
        Number of valid elements along the axis; the others become 0.
    axis
        Axis along which the results sum to 1; a negative value counts from the last.
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
    """Infer the shape of the lengths: that of the data without the axis."""
    if data is None or not use_length:
        return None
    axis %= len(data)
    return {"length": data[:axis] + data[axis + 1 :]}


@softmax.infer_outputs
def softmax_output(data: Shape | None, length: Shape | None, **_: object) -> Shape | None:
    """The output has the shape of the data."""
    return data


@op(
    "log_softmax",
    "_npx_log_softmax",
    shape=same,
    types="T -> @dtype",
    method=True,
    precision="full",
    names_single_input=True,
    repeatable=True,
)
def log_softmax(
    data: Tensor,
    *,
    axis: int = -1,
    temperature: float | None = None,
    dtype: FloatName | None = None,
    use_length: bool | None = False,
) -> Tensor:
    """Compute the logarithm of the softmax in a numerically stable way.

    Parameters
    ----------
    axis
        Axis along which the exponentials of the results sum to 1; a negative value counts from the
        last.
    dtype
        Data type of the result; by default that of the data.
    use_length
        Accepted for compatibility; has no effect.

    >>> mx.nd.log_softmax(mx.nd.array([[0, 0]])).asnumpy()
    array([[-0.6931472, -0.6931472]], dtype=float32)
    """
    return _along_axis(torch.log_softmax, data, axis, temperature, dtype)


@op(
    "softmin",
    attributes_of=log_softmax,
    shape=same,
    types="T -> @dtype",
    method=True,
    precision="full",
    names_output=True,
)
def softmin(data: Tensor, **attrs: Any) -> Tensor:
    """Compute the softmax of the negated input.

    Parameters
    ----------
    axis
        Axis along which the results sum to 1; a negative value counts from the last.

    >>> mx.nd.softmin(mx.nd.array([[1, 1]])).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    return softmax.function(-data, **attrs)


@op("SoftmaxActivation", shape=same, precision="full", names_output=True, repeatable=True)
def softmax_activation(
    data: Tensor, *, mode: Literal["channel", "instance"] = "instance"
) -> Tensor:
    """Compute the softmax of each sample, or over the channels at each position.

    Parameters
    ----------
    mode
        ``'instance'`` for each sample, ``'channel'`` over axis 1 at each position.

    >>> mx.nd.SoftmaxActivation(mx.nd.array([[1, 1]])).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    return torch.softmax(data, 1 if mode == "channel" else -1)
