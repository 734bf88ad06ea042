"""Rows of normalization."""

from __future__ import annotations

import numpy as np
import torch

from ..builder import Builder, Call, numpy_dtype
from ..table import row


def _batch_norm(
    g: Builder, call: Call, xs: tuple[str, ...], axis: int, gives_variance: bool = False
) -> str | list[str]:
    x, gamma, beta, mean, var = xs
    a = call.attrs
    if a["fix_gamma"]:  # MXNet takes 1, whatever gamma holds
        channels = call.shape[axis]
        gamma = g.array(np.ones(channels, dtype=numpy_dtype(call.dtypes[1])))
    wide = call.dtypes[1]
    x = g.cast(x, call.dtype, wide)
    order = [0, axis, *(i for i in range(1, call.ndim) if i != axis)]
    if call.ndim == 1:
        order = [0]
    moved = g.transpose(x, *order)
    made = g.BatchNormalization(
        moved, gamma, beta, mean, var, epsilon=a["eps"], momentum=a["momentum"]
    )
    made = g.transpose(made, *(int(i) for i in np.argsort(order)))
    made = g.cast(made, wide, call.dtype)
    if not a["output_mean_var"]:
        return made
    if gives_variance:
        return [made, g.Identity(mean), g.Identity(var)]
    shifted = g.Add(var, g.scalar(a["eps"], wide))
    return [made, g.Identity(mean), g.Reciprocal(g.Sqrt(shifted))]


@row("BatchNorm")
def batch_norm(g: Builder, call: Call, *xs: str) -> str | list[str]:
    """Normalize by the moving statistics."""
    return _batch_norm(g, call, xs, call.attrs["axis"] % call.ndim)


@row("BatchNorm_v1")
def batch_norm_v1(g: Builder, call: Call, *xs: str) -> str | list[str]:
    """Normalize channels at axis 1 by the moving statistics."""
    return _batch_norm(g, call, xs, 1)


@row("_contrib_SyncBatchNorm")
def sync_batch_norm(g: Builder, call: Call, *xs: str) -> str | list[str]:
    """Normalize channels at axis 1 by the moving statistics; the variance is an output as it is."""
    return _batch_norm(g, call, xs, 1, gives_variance=True)


@row("_contrib_BatchNormWithReLU")
def batch_norm_relu(g: Builder, call: Call, *xs: str) -> str | list[str]:
    """Normalize by the moving statistics, then ReLU."""
    made = _batch_norm(g, call, xs, call.attrs["axis"] % call.ndim)
    if isinstance(made, list):
        return [g.Relu(made[0]), *made[1:]]
    return g.Relu(made)


def standardize(
    g: Builder, x: str, axes: list[int], eps: float, dtype: torch.dtype
) -> tuple[str, str, str]:
    """Return the standardized value, the mean and ``sqrt(var + eps)``."""
    mean = g.reduce("ReduceMean", x, axes, True)
    distance = g.Sub(x, mean)
    variance = g.reduce("ReduceMean", g.Mul(distance, distance), axes, True)
    deviation = g.Sqrt(g.Add(variance, g.scalar(eps, dtype)))
    return g.Div(distance, deviation), mean, deviation


def _along(g: Builder, x: str, axis: int, rank: int) -> str:
    """Give a vector the axes to multiply along one axis."""
    return x if axis == rank - 1 else g.reshape(x, [-1, *[1] * (rank - 1 - axis)])


@row("LayerNorm")
def layer_norm(g: Builder, call: Call, x: str, gamma: str, beta: str) -> str | list[str]:
    """Normalize along one axis."""
    axis, eps = call.attrs["axis"] % call.ndim, call.attrs["eps"]
    wants_statistics = call.attrs["output_mean_var"]
    if g.opset >= 17 and axis == call.ndim - 1 and not wants_statistics:
        return g.LayerNormalization(x, gamma, beta, axis=-1, epsilon=eps)
    made, mean, deviation = standardize(g, x, [axis], eps, call.dtype)
    made = g.Mul(made, _along(g, gamma, axis, call.ndim))
    made = g.Add(made, _along(g, beta, axis, call.ndim))
    return [made, mean, deviation] if wants_statistics else made


@row("GroupNorm")
def group_norm(g: Builder, call: Call, x: str, gamma: str, beta: str) -> str | list[str]:
    """Normalize groups of channels; gamma and beta have one number for each group."""
    groups, eps = call.attrs["num_groups"], call.attrs["eps"]
    split = g.reshape(x, [0, groups, -1])
    made, mean, deviation = standardize(g, split, [2], eps, call.dtype)
    made = g.Add(g.Mul(made, g.reshape(gamma, [-1, 1])), g.reshape(beta, [-1, 1]))
    made = g.Reshape(made, g.sizes(x, call.shape))
    if not call.attrs["output_mean_var"]:
        return made
    return [made, g.squeeze(mean, 2), g.squeeze(deviation, 2)]


@row("InstanceNorm")
def instance_norm(g: Builder, call: Call, x: str, gamma: str, beta: str) -> str:
    """Normalize each channel of each sample."""
    if call.ndim == 2:
        wide = g.InstanceNormalization(g.unsqueeze(x, 2), gamma, beta, epsilon=call.attrs["eps"])
        return g.squeeze(wide, 2)
    return g.InstanceNormalization(x, gamma, beta, epsilon=call.attrs["eps"])


@row("L2Normalization")
def l2_normalization(g: Builder, call: Call, x: str) -> str:
    """Divide by the Euclidean norm."""
    mode, rank = call.attrs["mode"], call.ndim
    eps = g.scalar(call.attrs["eps"], call.dtype)
    square = g.Mul(x, x)
    if rank > 1:
        axes = {
            "instance": list(range(1, rank)),
            "channel": [1],
            "spatial": list(range(2, rank)),
        }[mode]
        square = g.reduce("ReduceSum", square, axes, True)
    return g.Div(x, g.Sqrt(g.Add(square, eps)))


@row("LRN")
def lrn(g: Builder, call: Call, x: str) -> str:
    """Divide by the energy of neighboring channels."""
    a = call.attrs
    size, alpha = a["nsize"], a["alpha"]
    if size % 2 == 0:
        size, alpha = size - 1, alpha * (size - 1) / size
    return g.LRN(x, alpha=alpha, beta=a["beta"], bias=a["knorm"], size=size)
