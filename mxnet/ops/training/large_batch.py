"""Update rules for large batches: the step of each weight is scaled by a ratio of norms.

LAMB has two phases, between which the caller computes norms, and a joint update of many weights;
LARS only computes learning rates.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...error import ShapeError
from ..declare import op
from ..shapes import Shapes, same
from ..tensor.products import list_norms
from .adam import step_adam_
from .rules import MultiUpdate, TensorList, Tensors, as_list, check_shapes, rule, scale_gradient

__all__ = ["lamb", "layer_rates"]


def lamb_direction(
    weight: TensorList,
    grad: TensorList,
    mean: TensorList,
    var: TensorList,
    *,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: int,
    bias_correction: bool = True,
    wd: float,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> TensorList:
    """Return LAMB's direction at step ``t``: ``m / (sqrt(v) + eps) + wd w``.

    ``m`` and ``v`` are Adam's moments of ``clip(rescale g)``, by default with bias correction.

    >>> w, m, v = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.lamb_update_phase1(w, w, m, v, beta1=0.5, beta2=0.5, t=1, wd=0.5).asnumpy()
    array([1.499999], dtype=float32)
    """
    weight, grad, mean, var = map(as_list, (weight, grad, mean, var))
    correction1, correction2 = (1.0 - beta1**t, 1.0 - beta2**t) if bias_correction else (1.0, 1.0)
    root = correction2**0.5
    grad = scale_gradient(grad, rescale_grad, clip_gradient)
    # Adam's step from 0, backwards: m / correction1 / (sqrt(v / correction2) + eps)
    direction = TensorList(map(torch.empty_like, weight)).zero_()
    numbers = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon * root}
    step_adam_(direction, grad, mean, var, lr=-root / correction1, **numbers)
    return direction.add_(weight, alpha=wd) if wd else direction


@rule()
def lamb(
    weight: TensorList,
    grad: TensorList,
    mean: TensorList,
    var: TensorList,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-6,
    t: int,
    bias_correction: bool = True,
    wd: float,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lower_bound: float = -1.0,
    upper_bound: float = -1.0,
) -> None:
    """Compute LAMB's update: ``w -= lr (|w| / |d|) d`` with d of `lamb_direction`."""
    direction = lamb_direction(
        weight,
        grad,
        mean,
        var,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        t=t,
        bias_correction=bias_correction,
        wd=wd,
        rescale_grad=rescale_grad,
        clip_gradient=clip_gradient,
    )
    weight = as_list(weight)
    norms = torch.stack(list(list_norms([*weight, *direction])))
    above, below = norms.chunk(2)
    rates = trust_ratio(above, below, lower_bound, upper_bound).mul_(-lr)
    weight.add_(direction.mul_(rates.unbind()))


def trust_ratio(r1: Tensor, r2: Tensor, lower_bound: float, upper_bound: float) -> Tensor:
    """Return ``r1 / r2``, with ``r1`` clamped to nonnegative bounds; 1 if either is 0.

    >>> trust_ratio(torch.tensor([5.0, 0.0]), torch.tensor([2.0, 1.0]), -1, -1)
    tensor([2.5000, 1.0000])
    """
    if lower_bound >= 0:
        r1 = r1.clamp_min(lower_bound)
    if upper_bound >= 0:
        r1 = r1.clamp_max(upper_bound)
    return torch.where((r1 == 0) | (r2 == 0), 1.0, r1 / r2)


def layer_rates(
    weights: Tensors,
    grads: Tensors,
    *,
    wd: float,
    eta: float,
    epsilon: float,
    rescale_grad: float,
) -> list[float]:
    """Return LARS's factor of the rate of each weight: ``eta |w| / (|g| + wd |w| + eps)``.

    The factor is 1 if a norm is 0.
    """
    norms = torch.stack([n.float() for n in list_norms([*weights, *grads])]).tolist()
    return [
        eta * w / (g * rescale_grad + wd * w + epsilon) if w > 0 and g > 0 else 1.0
        for w, g in zip(norms[: len(weights)], norms[len(weights) :], strict=True)
    ]


# -- operators --------------------------------------------------------------------------------

_phase1 = rule(returns_step=True)(lamb_direction)
lamb_update_phase1 = _phase1.operator("lamb_update_phase1")
mp_lamb_update_phase1 = _phase1.mixed(
    "mp_lamb_update_phase1",
    of="lamb_update_phase1",
    example="""
    >>> w, w32, m, v = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(beta1=0.5, beta2=0.5, t=1, wd=0.5)
    >>> mx.nd.mp_lamb_update_phase1(w, w, m, v, w32, **step).asnumpy()
    array([1.499999], dtype=float32)
    """,
)


def _phase2_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    arrays, outs = same([*ins[:2], *ins[4:]], outs, attrs)
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
    """Compute the second phase of LAMB: ``w -= lr (r1 / r2) g`` with the direction ``g``.

    ``r1`` is the weight's norm, clamped to nonnegative bounds, ``r2`` the direction's.

    >>> w, r1, r2 = mx.nd.ones(1), mx.nd.array([2]), mx.nd.array([4])
    >>> mx.nd.lamb_update_phase2(w, w, r1, r2, lr=0.5).asnumpy()
    array([0.75], dtype=float32)
    """
    check_shapes("lamb_update_phase2", weight, g)
    return torch.addcmul(weight, g, trust_ratio(r1, r2, lower_bound, upper_bound), value=-lr)


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
    """`lamb_update_phase2` on a 32-bit copy of a 16-bit weight.

    The copy is updated too. In 1.9.1 it is not, so steps do not accumulate.

    >>> w, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1)
    >>> r1, r2 = mx.nd.array([2]), mx.nd.array([4])
    >>> mx.nd.mp_lamb_update_phase2(w, w32, r1, r2, w32, lr=0.5).asnumpy()
    array([0.75], dtype=float16)
    """
    check_shapes("mp_lamb_update_phase2", weight, g, weight32)
    trust = trust_ratio(r1, r2, lower_bound, upper_bound)
    return weight32.addcmul_(g, trust, value=-lr).to(weight.dtype)


_MULTI_LAMB = (
    "learning_rates beta1 beta2 epsilon wds rescale_grad lower_bound upper_bound clip_gradient "
    "bias_correction step_count"
)
multi_lamb_update = MultiUpdate(
    lamb, "_multi_lamb_update", _MULTI_LAMB, count="num_tensors"
).declare(
    "Both phases of LAMB for many weights, given as ``w0, g0, mean0, var0, w1, ...``.",
    """
    >>> w, m, v = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(learning_rates=0.5, wds=0.0, step_count=1)
    >>> mx.nd._internal._multi_lamb_update(w, w, m, v, **step, out=w).asnumpy()
    array([0.5], dtype=float32)
    """,
)
multi_mp_lamb_update = MultiUpdate(
    lamb, "_multi_mp_lamb_update", _MULTI_LAMB, mixed=True, count="num_tensors"
).declare(
    "`_multi_lamb_update` on 32-bit copies: ``w0, g0, mean0, var0, w32_0, w1, ...``.",
    """
    >>> w, w32, m, v = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(learning_rates=0.5, wds=0.0, step_count=1)
    >>> mx.nd._internal._multi_mp_lamb_update(w, w, m, v, w32, **step, out=w).asnumpy()
    array([0.5], dtype=float16)
    """,
)


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

    If a norm is 0, the rate is unchanged.

    Parameters
    ----------
    lrs
        Learning rates of all layers.
    weights_sum_sq
        Sums of squares of the layers' weights.
    grads_sum_sq
        Sums of squares of the layers' gradients.
    wds
        Weight decays of all layers.
    eta
        Trust coefficient ``eta``.
    eps
        Small number in the denominator, against division by zero.

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
