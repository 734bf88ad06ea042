"""Batch normalization in graphs, with a joint update of the running statistics of all layers."""

from __future__ import annotations

import torch
from torch import Tensor

from ...torch_private import foreach
from ..declare import OneAux, Op, OpContext, ZeroAux, op
from ..nn.normalization import WideParameters, channel_shapes, normalize
from ..shapes import Shape


@op(
    "_batch_norm_with_statistics",
    outputs=3,
    shape=channel_shapes,
    bfloat16="any",
    full_precision_inputs=("gamma", "beta", "moving_mean", "moving_var"),
    overwritable=True,
    keeps_layout=True,
)
def batch_norm_with_statistics(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: ZeroAux,
    moving_var: OneAux,
    *,
    eps: float = 1e-3,
    fix_gamma: bool = True,
    axis: int = 1,
    run: OpContext,
) -> tuple[Tensor, Tensor, Tensor]:
    """Apply `BatchNorm`, and also return the mean and ``1 / sqrt(var + eps)``.

    The running statistics are not updated. Both results are empty if the batch is not used.

    >>> zero, one = mx.nd.array([0]), mx.nd.array([1])
    >>> out, *_ = mx.nd._internal._batch_norm_with_statistics(
    ...     mx.nd.array([[3], [5]]), one, zero, zero, one * 4, eps=0)
    >>> out.asnumpy()
    array([[1.5],
           [2.5]], dtype=float32)
    """
    states = moving_mean, moving_var
    out, mean, inverse_std = normalize(
        data, gamma, beta, *states, eps, None, fix_gamma, run.training, axis
    )
    if mean is None or inverse_std is None:
        mean = inverse_std = moving_mean.new_empty(0)
    return out, mean, inverse_std


batch_norm_with_statistics.type_pattern = WideParameters(None)


class _FirstType(WideParameters):
    """The result has the type of the first input; other inputs have any type."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the type of the result, or of the first input from it."""
        data = ins[0] if ins[0] is not None else outs[0]
        return [data, *ins[1:]], [data]


@op(
    "_move_statistics",
    count="num_args",
    precision="own",
    overwritable=True,
    keeps_layout=True,
    auto_inputs=False,
)
def move_statistics(*data: Tensor, momentum: float = 0.9, eps: float = 1e-3) -> Tensor:
    """Return the first array, and update the running statistics of layers.

    The first array is followed by four arrays per layer: running mean, running variance, and mean
    and ``1 / sqrt(var + eps)`` of the batch.

    Parameters
    ----------
    momentum
        Momentum of the running statistics.

    >>> mean, var = mx.nd.array([0]), mx.nd.array([1])
    >>> batch = mx.nd.array([5]), mx.nd.array([0.5])
    >>> _ = mx.nd._internal._move_statistics(mx.nd.ones(1), mean, var, *batch, eps=0, num_args=5)
    >>> mean.asnumpy(), var.asnumpy()
    (array([0.5], dtype=float32), array([1.3], dtype=float32))
    """
    out, *rest = data
    layers = [rest[i : i + 4] for i in range(0, len(rest), 4)]
    layers = [layer for layer in layers if layer[2].numel()]
    if layers:
        means, variances, batch_means, inverse_stds = zip(*layers, strict=True)
        states = [t.detach() if t.requires_grad else t for t in (*means, *variances)]
        with torch.no_grad():
            batch_vars = foreach("pow")(inverse_stds, -2)
            foreach("sub_")(batch_vars, eps)
            foreach("lerp_")(states, [*batch_means, *batch_vars], 1.0 - momentum)
    return out


move_statistics.type_pattern = _FirstType(None)


@move_statistics.infer_outputs
def move_statistics_shape(*shapes: Shape | None, **_: object) -> Shape | None:
    """The shape of the first array."""
    return shapes[0]
