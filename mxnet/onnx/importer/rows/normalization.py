"""Import rows of normalization."""

from __future__ import annotations

from typing import Any

from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value
from .axes import axis_within, wide


@imports("BatchNormalization", "SpatialBN")
def batch_norm(node: OnnxNode, x: Value, gamma: Value, beta: Value, mean: Value, var: Value) -> Any:
    """Normalize by stored statistics."""
    if node.get("training_mode", 0):
        return _batch_norm_training(node, x, gamma, beta, mean, var)
    return F.BatchNorm(
        x.symbol,
        gamma.symbol,
        beta.symbol,
        mean.symbol,
        var.symbol,
        eps=node.get("epsilon", 1e-5),
        momentum=node.get("momentum", 0.9),
        fix_gamma=False,
        use_global_stats=False,
        name=node.name,
    )


def _batch_norm_training(
    node: OnnxNode, x: Value, gamma: Value, beta: Value, mean: Value, var: Value
) -> list[Any]:
    """Normalize by the batch's own statistics and return the moved ones too."""
    eps, momentum = node.get("epsilon", 1e-5), node.get("momentum", 0.9)
    axes = (0, *range(2, x.rank))
    now = F.mean(x.symbol, axis=axes, keepdims=True)
    distance = F.broadcast_sub(x.symbol, now)
    spread = F.mean(F.square(distance), axis=axes, keepdims=True)
    shape = (1, -1) + (1,) * (x.rank - 2)
    made = F.broadcast_mul(F.broadcast_mul(distance, F.rsqrt(spread + eps)), _like(gamma, shape))
    moved = [
        old.symbol * momentum + F.reshape(new, shape=(-1,)) * (1 - momentum)
        for old, new in ((mean, now), (var, spread))
    ]
    return [F.broadcast_add(made, _like(beta, shape)), *moved]


def _like(value: Value, shape: tuple[int, ...]) -> Any:
    return F.reshape(value.symbol, shape=shape)


@imports("InstanceNormalization")
def instance_norm(node: OnnxNode, x: Value, gamma: Value, beta: Value) -> Any:
    """Normalize each channel of each sample."""
    eps = node.get("epsilon", 1e-5)
    return F.InstanceNorm(x.symbol, gamma.symbol, beta.symbol, eps=eps, name=node.name)


@imports("LRN")
def lrn(node: OnnxNode, x: Value) -> Any:
    """Divide by the energy of neighboring channels."""
    if node.get("size") % 2 == 0:
        raise node.unsupported("with an even size has no operator.")
    return F.LRN(
        x.symbol,
        alpha=node.get("alpha", 1e-4),
        beta=node.get("beta", 0.75),
        knorm=node.get("bias", 1.0),
        nsize=node.get("size"),
        name=node.name,
    )


@imports("LpNormalization")
def lp_normalization(node: OnnxNode, x: Value) -> Any:
    """Divide by the L1 or L2 norm along an axis."""
    axis, p = node.get("axis", -1), node.get("p", 2)
    norm = F.norm(x.symbol, ord=p, axis=axis, keepdims=True)
    safe = F.where(norm == 0, F.ones_like(norm), norm)
    return F.broadcast_div(x.symbol, safe, name=node.name)


def standardized(x: Any, axes: tuple[int, ...], eps: float) -> tuple[Any, Any, Any]:
    """Return the standardized symbol, its mean and the inverse deviation."""
    mean = F.mean(x, axis=axes, keepdims=True)
    distance = F.broadcast_sub(x, mean)
    variance = F.mean(F.square(distance), axis=axes, keepdims=True)
    inverse = F.rsqrt(variance + eps)
    return F.broadcast_mul(distance, inverse), mean, inverse


@imports("LayerNormalization")
def layer_norm(node: OnnxNode, x: Value, scale: Value, bias: Value | None = None) -> Any:
    """Normalize the last axes."""
    axis, eps = axis_within(node.get("axis", -1), x.rank), node.get("epsilon", 1e-5)
    wanted = len([n for n in node.output_names if n])
    if axis == x.rank - 1 and wanted == 1 and bias is not None and scale.rank == 1:
        return F.LayerNorm(x.symbol, scale.symbol, bias.symbol, axis=-1, eps=eps, name=node.name)
    made, mean, inverse = standardized(x.symbol, tuple(range(axis, x.rank)), eps)
    made = F.broadcast_mul(made, wide(scale, x.rank))
    if bias is not None:
        made = F.broadcast_add(made, wide(bias, x.rank))
    return [made, mean, inverse][:wanted]


@imports("RMSNormalization")
def rms_norm(node: OnnxNode, x: Value, scale: Value) -> Any:
    """Divide the last axes by their root mean square."""
    axis, eps = axis_within(node.get("axis", -1), x.rank), node.get("epsilon", 1e-5)
    power = F.mean(F.square(x.symbol), axis=tuple(range(axis, x.rank)), keepdims=True)
    made = F.broadcast_mul(x.symbol, F.rsqrt(power + eps))
    return F.broadcast_mul(made, wide(scale, x.rank), name=node.name)


@imports("GroupNormalization")
def group_norm(node: OnnxNode, x: Value, scale: Value, bias: Value) -> Any:
    """Normalize groups of channels."""
    groups, eps = node.get("num_groups"), node.get("epsilon", 1e-5)
    split = F.reshape(x.symbol, shape=(0, groups, -1))
    made, _, _ = standardized(split, (2,), eps)
    ones = (1,) * (x.rank - 2)
    if node.opset >= 21:
        made = F.reshape_like(made, x.symbol)
        made = F.broadcast_mul(made, F.reshape(scale.symbol, shape=(1, -1, *ones)))
        return F.broadcast_add(made, F.reshape(bias.symbol, shape=(1, -1, *ones)))
    made = F.broadcast_mul(made, F.reshape(scale.symbol, shape=(1, -1, 1)))
    made = F.broadcast_add(made, F.reshape(bias.symbol, shape=(1, -1, 1)))
    return F.reshape_like(made, x.symbol)


@imports("MeanVarianceNormalization")
def mean_variance(node: OnnxNode, x: Value) -> Any:
    """Subtract the mean and divide by the deviation."""
    axes = tuple(node.get("axes") or (0, 2, 3))
    mean = F.mean(x.symbol, axis=axes, keepdims=True)
    distance = F.broadcast_sub(x.symbol, mean)
    deviation = F.sqrt(F.mean(F.square(distance), axis=axes, keepdims=True))
    return F.broadcast_div(distance, deviation + 1e-9, name=node.name)
