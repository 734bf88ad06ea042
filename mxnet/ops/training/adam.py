"""Adam and related optimizers.

Operators return the new weight and change their states in place; call them with ``out=weight``. A
negative ``clip_gradient`` disables clipping.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from ...error import MXNetError
from .fused import fuse_adam_
from .rules import MultiUpdate, PerWeight, TensorList, as_list, decay_gradient, rule, scale_gradient

__all__ = ["adam", "adamax", "adamw", "ftml", "nadam", "step_adam_"]


def step_adam_(
    weight: TensorList,
    grad: TensorList,
    mean: TensorList,
    var: TensorList,
    *,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    wd: float = 0.0,
    shrink: float = 0.0,
) -> None:
    """Compute Adam's update without bias correction, which MXNet includes in the learning rate.

    ``w = (1 - shrink) w``;  ``g += wd w``;  ``m = b1 m + (1 - b1) g``;
    ``v = b2 v + (1 - b2) g^2``;  ``w -= lr m / (sqrt(v) + eps)``.
    """
    fuse = partial(
        fuse_adam_, weight, grad, mean, var, lr=lr, beta1=beta1, beta2=beta2, epsilon=epsilon
    )
    if shrink:
        if lr and not wd and fuse(wd=shrink / lr, decoupled=True):
            return
        weight.mul_(1.0 - shrink)
    if fuse(wd=wd):
        return
    if wd:
        grad = grad.add(weight, alpha=wd)
    mean.lerp_(grad, 1.0 - beta1)
    var.mul_(beta2).addcmul_(grad, grad, value=1.0 - beta2)
    weight.addcdiv_(mean, var.sqrt().add_(epsilon), value=-lr)


def _keeps_gradient(*, rescale_grad: float = 1.0, clip_gradient: float = -1.0, **_: Any) -> bool:
    return rescale_grad == 1.0 and clip_gradient < 0


@rule(in_one_pass=_keeps_gradient)
def adam(
    weight: TensorList,
    grad: TensorList,
    mean: TensorList,
    var: TensorList,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> None:
    """Compute Adam's update; the caller includes the bias correction in ``lr``.

    ``g = clip(rescale g + wd w)``;  ``m = b1 m + (1 - b1) g``;  ``v = b2 v + (1 - b2) g^2``;
    ``w -= lr m / (sqrt(v) + eps)``.

    >>> w, g, m, v = mx.nd.ones(1), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.adam_update(w, g, m, v, lr=0.25, beta1=0.5, beta2=0.75).asnumpy()
    array([0.75], dtype=float32)
    """
    if clip_gradient >= 0:
        grad, wd = decay_gradient(grad, weight, wd, rescale_grad, clip_gradient), 0.0
    else:  # the fused kernel adds the decay
        grad = scale_gradient(grad, rescale_grad, clip_gradient)
    step_adam_(weight, grad, mean, var, lr=lr, beta1=beta1, beta2=beta2, epsilon=epsilon, wd=wd)


@rule(in_one_pass=_keeps_gradient, scale_is_array=True)
def adamw(
    weight: TensorList,
    grad: TensorList,
    mean: TensorList,
    var: TensorList,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    eta: float,
    clip_gradient: float = -1.0,
    rescale_grad: float = 1.0,
) -> None:
    """Compute AdamW's update: ``w -= eta (lr m / (sqrt(v) + eps) + wd w)``.

    A rescale factor of 0, inf or nan skips the step.

    >>> w, m, v = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(lr=0.25, beta1=0.5, beta2=0.75, wd=0.5, eta=1.0)
    >>> mx.nd._internal._adamw_update(w, w, m, v, mx.nd.ones(1), **step).asnumpy()
    array([0.25], dtype=float32)
    """
    grad = scale_gradient(grad, rescale_grad, clip_gradient)
    numbers = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon}
    step_adam_(weight, grad, mean, var, lr=eta * lr, shrink=eta * wd, **numbers)


@rule()
def adamax(
    weight: TensorList,
    grad: TensorList,
    mean: TensorList,
    largest: TensorList,
    *,
    lr: float,
    beta1: float,
    beta2: float,
    wd: float,
    rescale_grad: float,
    clip_gradient: float,
) -> None:
    """Compute Adamax's update: ``u = max(b2 u, |g|)``;  ``w -= lr m / u``.

    Elements whose gradients were all 0 are unchanged; in 1.9.1 they become NaN.
    """
    grad = decay_gradient(grad, weight, wd, rescale_grad, clip_gradient)
    mean.lerp_(grad, 1.0 - beta1)
    largest.mul_(beta2).clamp_min_(grad.abs())
    tiny = torch.finfo(as_list(weight)[0].dtype).tiny
    weight.addcdiv_(mean, largest.clamp_min(tiny), value=-lr)


@rule()
def nadam(
    weight: TensorList,
    grad: TensorList,
    mean: TensorList,
    var: TensorList,
    *,
    grad_lr: PerWeight,
    mean_lr: PerWeight,
    beta1: float,
    beta2: float,
    epsilon: float,
    wd: float,
    rescale_grad: float,
    clip_gradient: float,
) -> None:
    """Compute Nadam's update: ``w -= (r g + r' m) / (sqrt(v) + eps)``.

    The caller includes bias correction and momentum schedule in the rates of the gradient (``r``)
    and of its mean (``r'``), and in ``eps``.
    """
    grad = decay_gradient(grad, weight, wd, rescale_grad, clip_gradient)
    mean.lerp_(grad, 1.0 - beta1)
    var.mul_(beta2).addcmul_(grad, grad, value=1.0 - beta2)
    size = var.sqrt().add_(epsilon).neg_()
    weight.addcdiv_(grad, size, value=grad_lr).addcdiv_(mean, size, value=mean_lr)


@rule()
def ftml(
    weight: TensorList,
    grad: TensorList,
    d: TensorList,
    v: TensorList,
    z: TensorList,
    *,
    lr: float,
    beta1: float = 0.6,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    t: int,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_grad: float = -1.0,
) -> None:
    """Compute FTML's update at step ``t``; ``g = clip(rescale g + wd w)``.

    ``v = b2 v + (1 - b2) g^2``;  ``d' = (1 - b1^t) / lr (sqrt(v / (1 - b2^t)) + eps)``;
    ``z = b1 z + (1 - b1) g - (d' - b1 d) w``;  ``w = -z / d'``.

    Parameters
    ----------
    d
        The denominator of the last step, updated in place.
    v
        The running mean of the squared gradient, updated in place.
    z
        The accumulated direction, updated in place.

    >>> w, d, v, z = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.ftml_update(w, w, d, v, z, lr=0.5, beta1=0.5, beta2=0.5, t=1).asnumpy()
    array([0.5], dtype=float32)
    """
    check_rate("ftml_update", lr)
    grad = decay_gradient(grad, weight, wd, rescale_grad, clip_grad)
    v.mul_(beta2).addcmul_(grad, grad, value=1.0 - beta2)
    new = v.div(1.0 - beta2**t).sqrt_().add_(epsilon).mul_((1.0 - beta1**t) / lr)
    sigma = new.sub(d, alpha=beta1)
    z.mul_(beta1).add_(grad, alpha=1.0 - beta1).addcmul_(sigma, weight, value=-1.0)
    d.copy_(new)
    weight.copy_(z.div(new).neg_())


def check_rate(name: str, lr: float) -> None:
    """Raise for a learning rate of 0 if the formula divides by it."""
    if not lr:
        raise MXNetError(
            f"{name}: divides by lr, which is 0. Use a positive rate; a schedule may end at "
            "final_lr=1e-8."
        )


# -- operators --------------------------------------------------------------------------------

adam_update = adam.operator("adam_update", "_sparse_adam_update", lazy=True)
adamw_update = adamw.operator("_adamw_update")
ftml_update = ftml.operator("ftml_update")

mp_adamw_update = adamw.mixed(
    "_mp_adamw_update",
    of="_adamw_update",
    example="""
    >>> w, w32, m, v = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(lr=0.25, beta1=0.5, beta2=0.75, eta=1.0)
    >>> mx.nd._internal._mp_adamw_update(w, w, m, v, w32, mx.nd.ones(1), **step).asnumpy()
    array([0.75], dtype=float16)
    """,
)
_MULTI_ADAMW = "lrs beta1 beta2 epsilon wds etas clip_gradient"
multi_adamw_update = MultiUpdate(adamw, "_multi_adamw_update", _MULTI_ADAMW).declare(
    "`_adamw_update` for many weights: ``w0, g0, mean0, var0, w1, ..., rescale_grad``.",
    """
    >>> w, m, v, one = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1), mx.nd.ones(1)
    >>> step = dict(lrs=0.25, wds=0, etas=1, beta1=0.5, beta2=0.75)
    >>> mx.nd._internal._multi_adamw_update(w, w, m, v, one, **step, out=w).asnumpy()
    array([0.75], dtype=float32)
    """,
)
multi_mp_adamw_update = MultiUpdate(
    adamw, "_multi_mp_adamw_update", _MULTI_ADAMW, mixed=True
).declare(
    "`_mp_adamw_update` for many weights; a 32-bit copy follows each weight's states.",
    """
    >>> w, w32, m, v = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step, one = dict(lrs=0.25, wds=0, etas=1, beta1=0.5, beta2=0.75), mx.nd.ones(1)
    >>> mx.nd._internal._multi_mp_adamw_update(w, w, m, v, w32, one, **step, out=w).asnumpy()
    array([0.75], dtype=float16)
    """,
)
