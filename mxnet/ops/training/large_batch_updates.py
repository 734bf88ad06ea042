"""Updates for large batches: each weight's step is scaled by its norm over its gradient's.

LAMB comes in two phases, with norms taken by the caller in between, and in one piece for many
weights; LARS only gives learning rates.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from ..shapes import Shapes, same
from .multi_updates import SeveralWeights, check_count
from .steps import all_rescaled, check_shapes, rescaled

_FLOAT_RESULT = "T T F F F -> F"


def _lamb_direction(
    weight: Tensor,
    grad: Tensor,
    mean: Tensor,
    var: Tensor,
    beta1: float,
    beta2: float,
    epsilon: float,
    t: int,
    bias_correction: bool,
    wd: float,
) -> Tensor:
    """Move Adam's moments and return its direction plus ``wd w``."""
    mean.mul_(beta1).add_(grad, alpha=1.0 - beta1)
    var.mul_(beta2).addcmul_(grad, grad, value=1.0 - beta2)
    if bias_correction:
        below = torch.div(var, 1.0 - beta2**t).sqrt_().add_(epsilon)
        direction = torch.div(mean, below.mul_(1.0 - beta1**t))
    else:
        direction = torch.div(mean, var.sqrt().add_(epsilon))
    return direction.add_(weight, alpha=wd) if wd else direction


@op("lamb_update_phase1", auto_inputs=False, shape=same, mutates=("mean", "var"))
def lamb_update_phase1(
    weight: Tensor,
    grad: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: int,
    bias_correction: bool = True,
    wd: float,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Tensor:
    """Return LAMB's direction at step ``t``: ``m / (sqrt(v) + eps) + wd w``.

    ``m`` and ``v`` are Adam's moments of ``clip(rescale g)``, by default corrected for their
    start at 0.

    >>> w, m, v = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.lamb_update_phase1(w, w, m, v, beta1=0.5, beta2=0.5, t=1, wd=0.5).asnumpy()
    array([1.499999], dtype=float32)
    """
    check_shapes("lamb_update_phase1", weight, grad, mean, var)
    grad = rescaled(grad, rescale_grad, clip_gradient)
    return _lamb_direction(weight, grad, mean, var, beta1, beta2, epsilon, t, bias_correction, wd)


@op(
    "mp_lamb_update_phase1",
    auto_inputs=False,
    shape=same,
    types=_FLOAT_RESULT,
    mutates=("mean", "var"),
)
def mp_lamb_update_phase1(
    weight: Tensor,
    grad: Tensor,
    mean: Tensor,
    var: Tensor,
    weight32: Tensor,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: int,
    bias_correction: bool = True,
    wd: float,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Tensor:
    """Do `lamb_update_phase1` in 32 bits for a 16-bit weight.

    >>> w, w32, m, v = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(beta1=0.5, beta2=0.5, t=1, wd=0.5)
    >>> mx.nd.mp_lamb_update_phase1(w, w, m, v, w32, **step).asnumpy()
    array([1.499999], dtype=float32)
    """
    check_shapes("mp_lamb_update_phase1", weight, grad, mean, var, weight32)
    grad = rescaled(grad.to(weight32.dtype), rescale_grad, clip_gradient)
    return _lamb_direction(weight32, grad, mean, var, beta1, beta2, epsilon, t, bias_correction, wd)


def _trust(r1: Tensor, r2: Tensor, lower_bound: float, upper_bound: float) -> Tensor:
    """Return ``r1 / r2``, the weight's norm within its bounds; 1 where either is 0."""
    if lower_bound >= 0:
        r1 = r1.clamp_min(lower_bound)
    if upper_bound >= 0:
        r1 = r1.clamp_max(upper_bound)
    return torch.where((r1 == 0) | (r2 == 0), 1.0, r1 / r2)


def _phase2_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    arrays = [*ins[:2], *ins[4:]]
    arrays, outs = same(arrays, outs, attrs)
    return [*arrays[:2], ins[2] or (1,), ins[3] or (1,), *arrays[2:]], outs


@op("lamb_update_phase2", auto_inputs=False, shape=_phase2_shapes)
def lamb_update_phase2(
    weight: Tensor,
    g: Tensor,
    r1: Tensor,
    r2: Tensor,
    *,
    lr: float,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
) -> Tensor:
    """Go along LAMB's direction ``g``: ``w -= lr (r1 / r2) g``.

    ``r1`` is the weight's norm, kept within bounds that are not negative, ``r2`` the direction's.

    >>> w, r1, r2 = mx.nd.ones(1), mx.nd.array([2]), mx.nd.array([4])
    >>> mx.nd.lamb_update_phase2(w, w, r1, r2, lr=0.5).asnumpy()
    array([0.75], dtype=float32)
    """
    check_shapes("lamb_update_phase2", weight, g)
    return torch.addcmul(weight, g, _trust(r1, r2, lower_bound, upper_bound), value=-lr)


@op(
    "mp_lamb_update_phase2",
    auto_inputs=False,
    shape=_phase2_shapes,
    types="T F F F F -> T",
    mutates=("weight32",),
)
def mp_lamb_update_phase2(
    weight: Tensor,
    g: Tensor,
    r1: Tensor,
    r2: Tensor,
    weight32: Tensor,
    *,
    lr: float,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
) -> Tensor:
    """Do `lamb_update_phase2` on a 32-bit copy of a 16-bit weight.

    The copy moves too. In 1.9.1 it does not, and so no step builds on the one before.

    >>> w, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1)
    >>> r1, r2 = mx.nd.array([2]), mx.nd.array([4])
    >>> mx.nd.mp_lamb_update_phase2(w, w32, r1, r2, w32, lr=0.5).asnumpy()
    array([0.75], dtype=float16)
    """
    check_shapes("mp_lamb_update_phase2", weight, g, weight32)
    trust = _trust(r1, r2, lower_bound, upper_bound)
    return weight32.addcmul_(g, trust, value=-lr).to(weight.dtype)


def _lamb_(
    weights: Sequence[Tensor],
    grads: Sequence[Tensor],
    means: Sequence[Tensor],
    variances: Sequence[Tensor],
    *,
    learning_rates: Sequence[float],
    beta1: float,
    beta2: float,
    epsilon: float,
    wds: Sequence[float],
    lower_bound: float,
    upper_bound: float,
    bias_correction: bool,
    step_count: Sequence[int],
) -> None:
    """Take LAMB's whole step in place."""
    directions = [
        _lamb_direction(*arrays, beta1, beta2, epsilon, t, bias_correction, wd)
        for *arrays, t, wd in zip(weights, grads, means, variances, step_count, wds, strict=True)
    ]
    norms = torch.stack(torch._foreach_norm([*weights, *directions]))
    trust = _trust(*norms.chunk(2), lower_bound, upper_bound)
    rates = trust * torch.tensor(learning_rates, dtype=trust.dtype, device=trust.device)
    torch._foreach_mul_(directions, list(rates.unbind()))
    torch._foreach_sub_(weights, directions)


_LAMB = SeveralWeights("weight", "grad", "mean", "var", count="num_tensors")
_MP_LAMB = SeveralWeights("weight", "grad", "mean", "var", "weight32", count="num_tensors")


@op("_multi_lamb_update", mutates=("mean", "var"), **_LAMB.declaration)
def multi_lamb_update(
    *data: Tensor,
    learning_rates: tuple[float, ...],
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    wds: tuple[float, ...],
    rescale_grad: float = 1.0,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    clip_gradient: float = -1.0,
    bias_correction: bool = True,
    step_count: tuple[int, ...],
    num_tensors: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do both phases of LAMB for many weights, given as ``w0, g0, mean0, var0, w1, ...``.

    >>> w, m, v = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(learning_rates=0.5, wds=0.0, step_count=1)
    >>> mx.nd._internal._multi_lamb_update(w, w, m, v, **step, out=w).asnumpy()
    array([0.5], dtype=float32)
    """
    name = "_multi_lamb_update"
    weights, grads, means, variances = _LAMB.split(name, data, num_tensors)
    check_count(name, num_tensors, learning_rates=learning_rates, wds=wds, step_count=step_count)
    new = [w.clone() for w in weights]
    _lamb_(
        new,
        all_rescaled(grads, rescale_grad, clip_gradient),
        means,
        variances,
        learning_rates=learning_rates,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wds=wds,
        lower_bound=lower_bound,
        upper_bound=upper_bound,
        bias_correction=bias_correction,
        step_count=step_count,
    )
    return _LAMB.result(new)


@op("_multi_mp_lamb_update", mutates=("mean", "var", "weight32"), **_MP_LAMB.declaration)
def multi_mp_lamb_update(
    *data: Tensor,
    learning_rates: tuple[float, ...],
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    wds: tuple[float, ...],
    rescale_grad: float = 1.0,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
    clip_gradient: float = -1.0,
    bias_correction: bool = True,
    step_count: tuple[int, ...],
    num_tensors: int = 1,
) -> Tensor | tuple[Tensor, ...]:
    """Do `_multi_lamb_update` on 32-bit copies: ``w0, g0, mean0, var0, w32_0, w1, ...``.

    >>> w, w32, m, v = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(learning_rates=0.5, wds=0.0, step_count=1)
    >>> mx.nd._internal._multi_mp_lamb_update(w, w, m, v, w32, **step, out=w).asnumpy()
    array([0.5], dtype=float16)
    """
    name = "_multi_mp_lamb_update"
    weights, grads, means, variances, wide = _MP_LAMB.split(name, data, num_tensors)
    check_count(name, num_tensors, learning_rates=learning_rates, wds=wds, step_count=step_count)
    grads = [g.to(w.dtype) for g, w in zip(grads, wide, strict=True)]
    _lamb_(
        wide,
        all_rescaled(grads, rescale_grad, clip_gradient),
        means,
        variances,
        learning_rates=learning_rates,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wds=wds,
        lower_bound=lower_bound,
        upper_bound=upper_bound,
        bias_correction=bias_correction,
        step_count=step_count,
    )
    return _MP_LAMB.narrowed(wide, weights)


@op("multi_lars", shape=same)
def multi_lars(
    lrs: Tensor,
    weights_sum_sq: Tensor,
    grads_sum_sq: Tensor,
    wds: Tensor,
    *,
    eta: float,
    eps: float,
    rescale_grad: float = 1.0,
) -> Tensor:
    """Return layer-wise learning rates: ``lr eta |w| / (|rescale g| + wd |w| + eps)``.

    Where a norm is 0 the rate stays as it is.

    >>> lrs, w, g, wds = mx.nd.ones(2), mx.nd.array([4, 0]), mx.nd.array([16, 1]), mx.nd.zeros(2)
    >>> mx.nd.multi_lars(lrs, w, g, wds, eta=0.5, eps=0).asnumpy()
    array([0.25, 1.  ], dtype=float32)
    """
    for other in (weights_sum_sq, grads_sum_sq, wds):
        if other.shape != lrs.shape:
            raise ShapeError(
                f"Shape inconsistent in multi_lars: lrs is {tuple(lrs.shape)}, but another input "
                f"is {tuple(other.shape)}."
            )
    weight, grad = weights_sum_sq.sqrt(), grads_sum_sq.sqrt()
    scaled = lrs * weight * eta / (grad * rescale_grad + wds * weight + eps)
    return torch.where((weight > 0) & (grad > 0), scaled, lrs)
