"""Normalization over a batch, over the channels of a sample, and over one axis."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from ...accelerator import has_cuda
from ...error import DTypeError, ShapeError
from ...torch_private import foreach, normalize_batch
from ..attributes import Count
from ..declare import OneAux, Op, OpContext, ZeroAux, op
from ..families import number
from ..shapes import Shapes, TypePattern, same, unify
from . import synchronized_statistics

HALF_TYPES = (torch.float16, torch.bfloat16)


def _variance(inverse_std: Tensor, eps: float) -> Tensor:
    return inverse_std.pow(-2).sub_(number(eps, inverse_std.dtype))


def _normalize_and_move(
    data: Tensor,
    scale: Tensor | None,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    eps: float,
    momentum: float,
) -> Sequence[Tensor]:
    """Normalize by the batch statistics, and update the running mean and (biased) variance.

    Torch's kernel updates temporary zeros, because it uses the unbiased variance, which is NaN for
    one element, and because devices with CPU fallback lose in-place updates of states.
    """
    size = data.numel() // data.shape[1]
    if size > 1 and (data.is_cpu or has_cuda()):
        unused, var = torch.empty_like(moving_mean), torch.zeros_like(moving_var)
        out, mean, inverse_std = normalize_batch(
            data, scale, beta, eps, unused, var, (size - 1) / size
        )
    else:
        out, mean, inverse_std = normalize_batch(data, scale, beta, eps)
        var = _variance(inverse_std, eps)
    foreach("lerp_")([moving_mean, moving_var], [mean, var], 1.0 - momentum)
    return out, mean, inverse_std


def normalize(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: Tensor,
    moving_var: Tensor,
    eps: float,
    momentum: float | None,
    fix_gamma: bool,
    by_batch: bool,
    axis: int,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the result, and the batch's mean and 1/std if it was normalized by them.

    If `momentum` is None, the running statistics are not updated.
    """
    ndim = data.ndim
    axis = axis + ndim if axis < 0 else axis
    if ndim == 1 and axis == 0:  # torch needs a batch axis
        parameters = gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, by_batch
        out, mean, inverse_std = normalize(data.unsqueeze(0), *parameters, 1)
        return out.squeeze(0), mean, inverse_std
    if axis != 1:
        data = data.movedim(axis, 1)
    scale: Tensor | None = gamma
    if fix_gamma:  # gamma ** 0 is 1 with a gradient of 0
        if by_batch and gamma.is_leaf:  # otherwise weight decay would change gamma in saved files
            gamma.data.fill_(1)  # `.data`: an earlier use of the layer may be in the same graph
        scale = gamma.pow(0) if gamma.requires_grad else None
    if moving_mean.requires_grad or moving_var.requires_grad:  # states get no gradient
        moving_mean, moving_var = moving_mean.detach(), moving_var.detach()
    mean = inverse_std = None
    if by_batch and data.numel():  # an empty batch has no statistics
        if momentum is None:
            out, mean, inverse_std = normalize_batch(data, scale, beta, eps)
        else:
            states = moving_mean, moving_var
            out, mean, inverse_std = _normalize_and_move(data, scale, beta, *states, eps, momentum)
    else:
        out = torch.batch_norm(data, scale, beta, moving_mean, moving_var, False, 0.0, eps, True)
    return out if axis == 1 else out.movedim(1, axis), mean, inverse_std


def _statistics(
    mean: Tensor | None,
    inverse_std: Tensor | None,
    moving_mean: Tensor,
    moving_var: Tensor,
    eps: float,
) -> tuple[Tensor, Tensor]:
    """Return the used mean and 1/std, detached."""
    if mean is None or inverse_std is None:
        return moving_mean.detach().clone(), moving_var.detach().add(eps).rsqrt_()
    return mean, inverse_std


def channel_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Infer the shapes: parameters and statistics have one element per channel."""
    data = unify(ins[0], outs[0], "data and output of batch normalization")
    if data is None:
        return ins, outs
    channels = (data[attrs.get("axis", 1)],)
    rest = [unify(channels, s, "a parameter of batch normalization") for s in ins[1:]]
    return [data, *rest], [data, *[channels] * (len(outs) - 1)]


class WideParameters(TypePattern):
    """Parameters, states and statistics have the data type of the data, but at least float32."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer all types from that of the data (or of the output)."""
        data = ins[0] if ins[0] is not None else outs[0]
        if data is None:
            return ins, outs
        wide = torch.float32 if data in HALF_TYPES else data
        for shape in (*ins[1:], *outs[1:]):
            if shape is not None and shape is not wide:
                raise DTypeError(
                    f"{op.name}: This layer requires uniform type. Expected {wide} for the "
                    f"parameters of {data} data, given {shape}."
                )
        return [data, *[wide] * (len(ins) - 1)], [data, *[wide] * (len(outs) - 1)]


def _batch_outputs(attrs: dict) -> tuple[str, ...]:
    return ("output", "mean", "var") if attrs["output_mean_var"] else ("output",)


@op(
    "BatchNorm",
    "_npx_batch_norm",
    outputs=_batch_outputs,
    total=3,
    shape=channel_shapes,
    bfloat16="any",
    full_precision_inputs=("gamma", "beta", "moving_mean", "moving_var"),
    overwritable=True,
    keeps_layout=True,
    hidden_outputs=("output_mean_var", ("mean", "var")),
)
def batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: ZeroAux,
    moving_var: OneAux,
    *,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
    run: OpContext,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Normalize each channel: ``gamma * (x - mean) / sqrt(var + eps) + beta``.

    Mean and variance are those of the batch in training, and the running statistics otherwise. With
    `fix_gamma`, gamma is fixed at 1. `output_mean_var` adds the used mean and ``1 / sqrt(var +
    eps)`` as outputs.

    Parameters
    ----------
    axis
        Axis of the channels; a negative value counts from the last.

    >>> zero, one = mx.nd.array([0]), mx.nd.array([1])
    >>> mx.nd.BatchNorm(mx.nd.array([[3], [5]]), one, zero, zero, one * 4, eps=0).asnumpy()
    array([[1.5],
           [2.5]], dtype=float32)
    """
    by_batch = run.training and not use_global_stats
    out, mean, inverse_std = normalize(
        data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, by_batch, axis
    )
    if output_mean_var:
        return (out, *_statistics(mean, inverse_std, moving_mean, moving_var, eps))
    return out


@op(
    "BatchNorm_v1",
    outputs=_batch_outputs,
    total=3,
    shape=channel_shapes,
    full_precision_inputs=("gamma", "beta", "moving_mean", "moving_var"),
    overwritable=True,
    keeps_layout=True,
)
def batch_norm_v1(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: ZeroAux,
    moving_var: OneAux,
    *,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    run: OpContext,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Old version of `BatchNorm`, with channels at axis 1.

    >>> zero, one = mx.nd.array([0]), mx.nd.array([1])
    >>> mx.nd.BatchNorm_v1(mx.nd.array([[3], [5]]), one, zero, zero, one * 4, eps=0).asnumpy()
    array([[1.5],
           [2.5]], dtype=float32)
    """
    return batch_norm.function(
        data,
        gamma,
        beta,
        moving_mean,
        moving_var,
        eps=eps,
        momentum=momentum,
        fix_gamma=fix_gamma,
        use_global_stats=use_global_stats,
        output_mean_var=output_mean_var,
        run=run,
    )


@op(
    "_contrib_SyncBatchNorm",
    outputs=_batch_outputs,
    total=3,
    shape=channel_shapes,
    precision="full",
    full_precision_inputs=("gamma", "beta", "moving_mean", "moving_var"),
    overwritable=True,
    keeps_layout=True,
)
def sync_batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: ZeroAux,
    moving_var: OneAux,
    *,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    ndev: int = 1,
    key: str,
    run: OpContext,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Normalize each channel over the batches of all workers of a job if ``ndev`` is above 1.

    Without a job, statistics are those of this process's batch. The third output is the variance.

    Parameters
    ----------
    ndev
        Number of workers that share statistics; with 1 each worker uses its own.
    key
        Name of the layer, the same on all workers.

    >>> zero, one = mx.nd.array([0]), mx.nd.array([1])
    >>> mx.nd.contrib.SyncBatchNorm(mx.nd.array([[3], [5]]), one, zero, zero, one * 4, key="bn",
    ...                             eps=0).asnumpy()
    array([[1.5],
           [2.5]], dtype=float32)
    """
    by_batch = run.training and not use_global_stats
    if by_batch and ndev > 1 and synchronized_statistics.sum_in_place is not None:
        if fix_gamma and gamma.is_leaf:
            gamma.data.fill_(1)
        scale = gamma.pow(0) if fix_gamma else gamma
        out, mean, var = synchronized_statistics.normalize(data, scale, beta, eps)
        moving_mean.detach().lerp_(mean, 1.0 - momentum)
        moving_var.detach().lerp_(var, 1.0 - momentum)
        return (out, mean, var) if output_mean_var else out
    out, mean, inverse_std = normalize(
        data, gamma, beta, moving_mean, moving_var, eps, momentum, fix_gamma, by_batch, 1
    )
    if not output_mean_var:
        return out
    if mean is None or inverse_std is None:
        return out, moving_mean.detach().clone(), moving_var.detach().clone()
    return out, mean, _variance(inverse_std, eps)


@op(
    "_contrib_BatchNormWithReLU",
    attributes_of=batch_norm,
    outputs=_batch_outputs,
    total=4,
    shape=channel_shapes,
)
def batch_norm_with_relu(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: ZeroAux,
    moving_var: OneAux,
    *,
    run: OpContext,
    **attrs: Any,
) -> Tensor | tuple[Tensor, Tensor, Tensor]:
    """Apply `BatchNorm`, then ReLU.

    >>> zero, one = mx.nd.array([0]), mx.nd.array([1])
    >>> mx.nd.contrib.BatchNormWithReLU(mx.nd.array([[-3], [5]]), one, zero, zero, one * 4,
    ...                                 eps=0).asnumpy()
    array([[0. ],
           [2.5]], dtype=float32)
    """
    result = batch_norm.function(data, gamma, beta, moving_mean, moving_var, run=run, **attrs)
    if isinstance(result, tuple):
        out, mean, inverse_std = result
        return torch.relu(out), mean, inverse_std
    return torch.relu(result)


for _member in (batch_norm, batch_norm_v1, sync_batch_norm, batch_norm_with_relu):
    _member.type_pattern = WideParameters(None)


def _sample_outputs(attrs: dict) -> tuple[str, ...]:
    return ("output", "mean", "std") if attrs["output_mean_var"] else ("output",)


def _layer_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    data = unify(ins[0], outs[0], "data and output of LayerNorm")
    if data is None:
        return ins, outs
    axis = attrs["axis"] % len(data)
    width = (data[axis],)
    rest = [unify(width, s, "a parameter of LayerNorm") for s in ins[1:]]
    moments = (*data[:axis], 1, *data[axis + 1 :])
    return [data, *rest], [data, *[moments] * (len(outs) - 1)]


@op(
    "LayerNorm",
    "_npx_layer_norm",
    outputs=_sample_outputs,
    total=3,
    shape=_layer_shapes,
    precision="full",
    overwritable=True,
    hidden_outputs=("output_mean_var", ("mean", "std")),
    repeatable=True,
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

    `output_mean_var` adds the mean and ``sqrt(var + eps)`` as outputs.

    Parameters
    ----------
    gamma
        Scale along the axis.
    beta
        Shift along the axis.
    axis
        Axis to normalize; a negative value counts from the last.

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
    match = out, mean.detach().clone(), inverse_std.detach().reciprocal()
    if inner:
        return match
    moved, mean, std = (t.movedim(-1, axis).contiguous() for t in match)
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
    outputs=_sample_outputs,
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
    """Normalize groups of channels; gamma and beta have one element per group.

    `output_mean_var` adds the mean and ``sqrt(var + eps)`` of each group as outputs.

    Parameters
    ----------
    data
        Batch of shape ``(batch, channels, ...)``.
    gamma
        Scale of each group.
    beta
        Shift of each group.
    num_groups
        Number of groups; it must divide the number of channels.

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
    gamma, beta = gamma.repeat_interleave(each), beta.repeat_interleave(each)
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
        Small constant added to the sum of squares to avoid division by zero.
    mode
        What to normalize: each sample (``instance``), each position over the channels
        (``channel``), or each channel over its positions (``spatial``).

    >>> mx.nd.L2Normalization(mx.nd.array([[3, 4]])).asnumpy()
    array([[0.6, 0.8]], dtype=float32)
    """
    if data.ndim == 1:  # each element is a sample
        return data / (data * data).add(eps).sqrt()
    return data / _norms(data, eps, mode)


def _norms(data: Tensor, eps: float, mode: str) -> Tensor:
    return (data * data).sum(_norm_axes(mode, data.ndim), keepdim=True).add(eps).sqrt()


def _with_norm(
    data: Tensor, *, eps: float = 1e-10, mode: str = "instance"
) -> tuple[Tensor, Tensor]:
    output = l2_normalization.function(data, eps=eps, mode=mode)
    if data.ndim == 1:
        return output, (data * data).add(eps).sqrt()
    norms = _norms(data.detach(), eps, mode)
    axes = {"instance": 1, "spatial": 2}.get(mode)  # drop the reduced axes
    return output, norms if axes is None else norms.reshape(norms.shape[:axes])


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
    """Apply local response normalization over `nsize` neighboring channels.

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
    if nsize % 2 == 0:  # the window is symmetric, so it has one channel less
        alpha, nsize = alpha * (nsize - 1) / nsize, nsize - 1
    return F.local_response_norm(data, nsize, alpha, beta, knorm)
