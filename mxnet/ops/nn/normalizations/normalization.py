"""Normalization that needs no moving statistics: by layer, group, instance, norm or neighbors."""

from __future__ import annotations

from functools import partial
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ....error import ShapeError
from ...attributes import Count
from ...declare import op
from ...shapes import Shapes, same, unify


def _visible(attrs: dict) -> tuple[str, ...]:
    return ("output", "mean", "std") if attrs["output_mean_var"] else ("output",)


def _layer_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data = unify(ins[0], outs[0], "data and output of LayerNorm")
    if data is None:
        return ins, outs
    axis = attrs["axis"] % len(data)
    width = (data[axis],)
    rest = [unify(width, s, "a parameter of LayerNorm") for s in ins[1:]]
    kept = (*data[:axis], 1, *data[axis + 1 :])
    return [data, *rest], [data, *[kept] * (len(outs) - 1)]


@op(
    "LayerNorm",
    "_npx_layer_norm",
    outputs=_visible,
    total=3,
    shape=_layer_shapes,
    precision="full",
    overwritable=True,
    hidden_outputs=("output_mean_var", ("mean", "std")),
)
def layer_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    axis: int = -1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Normalize along one axis: ``gamma * (x - mean) / sqrt(var + eps) + beta``.

    `output_mean_var` adds the mean and ``sqrt(var + eps)``.

    Parameters
    ----------
    gamma
        Scale along the axis.
    beta
        Shift along the axis.
    axis
        The axis to normalize along; a negative one counts from the last.

    >>> mx.nd.LayerNorm(mx.nd.array([[1, 3]]), mx.nd.array([1, 2]), mx.nd.array([0, 1]),
    ...                 eps=0).asnumpy()
    array([[-1.,  3.]], dtype=float32)
    """
    inner = axis in (-1, data.ndim - 1)
    x = data if inner else data.movedim(axis, -1)
    if not output_mean_var:
        out = torch.layer_norm(x, x.shape[-1:], gamma, beta, eps)
        return out if inner else out.movedim(-1, axis).contiguous()
    out, mean, inverse_std = torch.native_layer_norm(x, x.shape[-1:], gamma, beta, eps)
    found = out, mean.detach().clone(), inverse_std.detach().reciprocal()
    if inner:
        return found
    moved, mean, std = (t.movedim(-1, axis).contiguous() for t in found)
    return moved, mean, std


def _group_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data = unify(ins[0], outs[0], "data and output of GroupNorm")
    groups = attrs["num_groups"]
    rest = [unify((groups,), s, "a parameter of GroupNorm") for s in ins[1:]]
    if data is None:
        return [data, *rest], outs
    return [data, *rest], [data, *[(data[0], groups)] * (len(outs) - 1)]


@op(
    "GroupNorm",
    outputs=_visible,
    total=3,
    shape=_group_shapes,
    precision="full",
    hidden_outputs=("output_mean_var", ("mean", "std")),
)
def group_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    num_groups: int = 1,
    eps: float = 1e-5,
    output_mean_var: bool = False,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Normalize groups of channels; gamma and beta have one number a group.

    `output_mean_var` adds the mean and ``sqrt(var + eps)`` of each group.

    Parameters
    ----------
    data
        Batch of shape ``(batch, channels, ...)``.
    gamma
        Scale of each group.
    beta
        Shift of each group.
    num_groups
        Number of groups; the number of channels must be a multiple of it.

    >>> mx.nd.GroupNorm(mx.nd.array([[[1, 3], [4, 8]]]), mx.nd.array([1, 2]), mx.nd.array([0, 1]),
    ...                 num_groups=2, eps=0).asnumpy()
    array([[[-1.,  1.],
            [-1.,  3.]]], dtype=float32)
    """
    channels = data.shape[1]
    if gamma.shape != (num_groups,) or channels % num_groups:
        raise ShapeError(
            f"GroupNorm: {channels} channels in num_groups={num_groups} need gamma and beta of "
            f"shape ({num_groups},), got {tuple(gamma.shape)} and {tuple(beta.shape)}."
        )
    each = channels // num_groups
    gamma = gamma.unsqueeze(1).expand(-1, each).reshape(-1)
    beta = beta.unsqueeze(1).expand(-1, each).reshape(-1)
    if not output_mean_var:
        return torch.group_norm(data, num_groups, gamma, beta, eps)
    area = data[0, 0].numel() if data.ndim > 2 else 1
    out, mean, inverse_std = torch.native_group_norm(
        data.contiguous(), gamma, beta, data.shape[0], channels, area, num_groups, eps
    )
    return out, mean.detach(), inverse_std.detach().reciprocal()


def _instance_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data = unify(ins[0], outs[0], "data and output of InstanceNorm")
    if data is None:
        return ins, outs
    rest = [unify(data[1:2], s, "a parameter of InstanceNorm") for s in ins[1:]]
    return [data, *rest], [data]


@op(
    "InstanceNorm",
    outputs=("output",),
    total=3,
    shape=_instance_shapes,
    precision="full",
    gradients_by_input=True,
    hidden_outputs=(None, ("mean", "var")),
)
def instance_norm(data: Tensor, gamma: Tensor, beta: Tensor, *, eps: float = 1e-3) -> Tensor:
    """Normalize each channel of each sample over its spatial axes.

    Parameters
    ----------
    data
        Batch of shape ``(batch, channels, ...)``.

    >>> mx.nd.InstanceNorm(mx.nd.array([[[1, 3]]]), mx.nd.array([2]), mx.nd.array([1]),
    ...                    eps=0).asnumpy()
    array([[[-1.,  3.]]], dtype=float32)
    """
    if data.ndim == 2:
        return instance_norm.function(data.unsqueeze(2), gamma, beta, eps=eps).squeeze(2)
    return torch.instance_norm(data, gamma, beta, None, None, True, 0.0, eps, True)


def _with_moments(
    data: Tensor, gamma: Tensor, beta: Tensor, *, eps: float = 1e-3
) -> tuple[Tensor, Tensor, Tensor]:
    variance, mean = torch.var_mean(data.detach().flatten(2), -1, correction=0)
    return instance_norm.function(data, gamma, beta, eps=eps), mean, variance


instance_norm.variant("hidden_outputs")(lambda attrs: partial(_with_moments, **attrs))


def _norm_axes(mode: str, ndim: int) -> tuple[int, ...]:
    if mode == "instance":
        return tuple(range(1, ndim)) or (0,)
    if ndim < 3:
        raise ShapeError(f"L2Normalization: mode {mode!r} needs at least 3 dimensions, got {ndim}.")
    return (1,) if mode == "channel" else tuple(range(2, ndim))


@op(
    "L2Normalization",
    outputs=("output",),
    total=2,
    shape=same,
    precision="full",
    names_single_input=True,
    gradients_by_input=True,
    hidden_outputs=(None, ("norm",)),
)
def l2_normalization(
    data: Tensor,
    *,
    eps: float = 1e-10,
    mode: Literal["channel", "instance", "spatial"] = "instance",
) -> Tensor:
    """Divide by the Euclidean norm of each sample, position or channel: ``x / sqrt(|x|^2 + eps)``.

    Parameters
    ----------
    eps
        Small number added to the sum of squares, against division by zero.
    mode
        Norm of each whole sample (``instance``), of each position over the ``channel`` axis, or of
        each channel over its positions (``spatial``).

    >>> mx.nd.L2Normalization(mx.nd.array([[3, 4]])).asnumpy()
    array([[0.6, 0.8]], dtype=float32)
    """
    if data.ndim == 1:  # every number is a sample of its own
        return data / (data * data).add(eps).sqrt()
    return data / _norms(data, eps, mode)


def _norms(data: Tensor, eps: float, mode: str) -> Tensor:
    return (data * data).sum(_norm_axes(mode, data.ndim), keepdim=True).add(eps).sqrt()


def _with_norm(
    data: Tensor, *, eps: float = 1e-10, mode: str = "instance"
) -> tuple[Tensor, Tensor]:
    made = l2_normalization.function(data, eps=eps, mode=mode)
    if data.ndim == 1:
        return made, (data * data).add(eps).sqrt()
    norms = _norms(data.detach(), eps, mode)
    kept = {"instance": 1, "spatial": 2}.get(mode)  # the axes that have no norms of their own go
    return made, norms if kept is None else norms.reshape(norms.shape[:kept])


l2_normalization.variant("hidden_outputs")(lambda attrs: partial(_with_norm, **attrs))


@op(
    "LRN",
    outputs=("output",),
    total=2,
    shape=same,
    precision="full",
    bfloat16="any",
    names_single_input=True,
)
def lrn(
    data: Tensor,
    *,
    alpha: float = 1e-4,
    beta: float = 0.75,
    knorm: float = 2.0,
    nsize: Count,
) -> Tensor:
    """Divide by the energy of `nsize` neighboring channels.

    ``x / (knorm + alpha / nsize * sum(x^2)) ^ beta``

    Parameters
    ----------
    alpha
        Factor of the squares.
    beta
        Exponent.
    knorm
        Number added to the scaled squares.
    nsize
        Number of neighboring channels, an odd number.

    >>> mx.nd.LRN(mx.nd.array([[[[2]]]]), nsize=1, alpha=1, beta=1, knorm=0).asnumpy()
    array([[[[0.5]]]], dtype=float32)
    """
    if nsize % 2 == 0:  # the window is symmetric, so one neighbor less takes part
        alpha, nsize = alpha * (nsize - 1) / nsize, nsize - 1
    return F.local_response_norm(data, nsize, alpha, beta, knorm)
