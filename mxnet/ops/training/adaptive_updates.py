"""Updates that divide by a running size of the gradient: Adam, AdamW, RMSProp, FTRL, FTML, AdaGrad.

Each returns the new weight and changes its states in place; call them with ``out=weight``.
A negative ``clip_gradient`` means no clipping.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...error import MXNetError, ShapeError
from ..declare import op
from ..shapes import Shapes, same
from .steps import adam_, check_shapes, rescaled


def decayed(
    grad: Tensor, weight: Tensor, rescale_grad: float, wd: float, clip_gradient: float
) -> Tensor:
    """Return ``clip(rescale g + wd w)``: here weight decay is part of what is clipped."""
    if rescale_grad != 1.0:
        grad = grad * rescale_grad
    if wd:
        grad = torch.add(grad, weight, alpha=wd)
    return rescaled(grad, 1.0, clip_gradient)


@op(
    "adam_update",
    "_sparse_adam_update",
    auto_inputs=False,
    shape=same,
    mutates=("mean", "var"),
)
def adam_update(
    weight: Tensor,
    grad: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
) -> Tensor:
    """Do Adam's step; the caller puts bias correction into ``lr``.

    ``g = clip(rescale g + wd w)``;  ``m = b1 m + (1 - b1) g``;  ``v = b2 v + (1 - b2) g^2``;
    ``w -= lr m / (sqrt(v) + eps)``.

    >>> w, g, m, v = mx.nd.ones(1), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.adam_update(w, g, m, v, lr=0.25, beta1=0.5, beta2=0.75).asnumpy()
    array([0.75], dtype=float32)
    """
    check_shapes("adam_update", weight, grad, mean, var)
    if clip_gradient >= 0:
        grad, wd = decayed(grad, weight, rescale_grad, wd, clip_gradient), 0.0
    elif rescale_grad != 1.0:
        grad = grad * rescale_grad
    new = weight.clone()
    adam_(
        [new],
        [grad],
        [mean],
        [var],
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        wd=wd,
    )
    return new


def one_number(name: str, value: Tensor) -> float:
    """Return the rescale factor, which AdamW takes as an array so that it may change freely."""
    if value.numel() != 1:
        raise ShapeError(f"{name}: rescale_grad must hold one number, got {tuple(value.shape)}.")
    return value.item()


def usable(scale: float) -> bool:
    """Return whether a loss scale left a gradient to use; an overflow shows as 0, inf or nan."""
    return scale != 0.0 and abs(scale) < float("inf")


def _adamw_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    arrays, outs = same(ins[:-1], outs, attrs)
    return [*arrays, ins[-1] or (1,)], outs


@op("_adamw_update", auto_inputs=False, shape=_adamw_shapes, mutates=("mean", "var"))
def adamw_update(
    weight: Tensor,
    grad: Tensor,
    mean: Tensor,
    var: Tensor,
    rescale_grad: Tensor,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    eta: float,
    clip_gradient: float = -1.0,
) -> Tensor:
    """Do Adam's step with weight decay beside it: ``w -= eta (lr m / (sqrt(v) + eps) + wd w)``.

    A rescale factor of 0, inf or nan skips the step.

    >>> w, m, v = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(lr=0.25, beta1=0.5, beta2=0.75, wd=0.5, eta=1.0)
    >>> mx.nd._internal._adamw_update(w, w, m, v, mx.nd.ones(1), **step).asnumpy()
    array([0.25], dtype=float32)
    """
    check_shapes("_adamw_update", weight, grad, mean, var)
    scale = one_number("_adamw_update", rescale_grad)
    new = weight.clone()
    if usable(scale):
        adam_(
            [new],
            [rescaled(grad, scale, clip_gradient)],
            [mean],
            [var],
            lr=eta * lr,
            beta1=beta1,
            beta2=beta2,
            epsilon=epsilon,
            decay=eta * wd,
        )
    return new


@op(
    "_mp_adamw_update",
    auto_inputs=False,
    shape=_adamw_shapes,
    types="T T F F F F -> T",
    mutates=("mean", "var", "weight32"),
)
def mp_adamw_update(
    weight: Tensor,
    grad: Tensor,
    mean: Tensor,
    var: Tensor,
    weight32: Tensor,
    rescale_grad: Tensor,
    *,
    lr: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    eta: float,
    clip_gradient: float = -1.0,
) -> Tensor:
    """Do `_adamw_update` on a 32-bit copy of a 16-bit weight; its states are 32-bit too.

    >>> w, w32, m, v = mx.nd.ones(1, dtype="float16"), mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> step = dict(lr=0.25, beta1=0.5, beta2=0.75, eta=1.0)
    >>> mx.nd._internal._mp_adamw_update(w, w, m, v, w32, mx.nd.ones(1), **step).asnumpy()
    array([0.75], dtype=float16)
    """
    check_shapes("_mp_adamw_update", weight, grad, mean, var, weight32)
    scale = one_number("_mp_adamw_update", rescale_grad)
    if not usable(scale):
        return weight.clone()
    adam_(
        [weight32],
        [rescaled(grad.to(weight32.dtype), scale, clip_gradient)],
        [mean],
        [var],
        lr=eta * lr,
        beta1=beta1,
        beta2=beta2,
        epsilon=epsilon,
        decay=eta * wd,
    )
    return weight32.to(weight.dtype)


def _check_rate(name: str, lr: float) -> None:
    if not lr:
        raise MXNetError(
            f"{name}: divides by lr, which is 0. Give more; a schedule may end at final_lr=1e-8."
        )


@op("ftml_update", auto_inputs=False, shape=same, mutates=("d", "v", "z"))
def ftml_update(
    weight: Tensor,
    grad: Tensor,
    d: Tensor,
    v: Tensor,
    z: Tensor,
    *,
    lr: float,
    beta1: float = 0.6,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    t: int,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_grad: float = -1.0,
) -> Tensor:
    """Follow the moving leader, at step ``t``; ``g = clip(rescale g + wd w)``.

    ``v = b2 v + (1 - b2) g^2``;  ``d' = (1 - b1^t) / lr (sqrt(v / (1 - b2^t)) + eps)``;
    ``z = b1 z + (1 - b1) g - (d' - b1 d) w``;  ``w = -z / d'``.

    >>> w, d, v, z = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.ftml_update(w, w, d, v, z, lr=0.5, beta1=0.5, beta2=0.5, t=1).asnumpy()
    array([0.5], dtype=float32)
    """
    check_shapes("ftml_update", weight, grad, d, v, z)
    _check_rate("ftml_update", lr)
    grad = decayed(grad, weight, rescale_grad, wd, clip_grad)
    v.mul_(beta2).addcmul_(grad, grad, value=1.0 - beta2)
    new_d = torch.div(v, 1.0 - beta2**t).sqrt_().add_(epsilon).mul_((1.0 - beta1**t) / lr)
    sigma = torch.sub(new_d, d, alpha=beta1)
    z.mul_(beta1).add_(grad, alpha=1.0 - beta1).addcmul_(sigma, weight, value=-1.0)
    d.copy_(new_d)
    return torch.div(z, new_d).neg_()


@op(
    "ftrl_update",
    "_sparse_ftrl_update",
    auto_inputs=False,
    shape=same,
    mutates=("z", "n"),
)
def ftrl_update(
    weight: Tensor,
    grad: Tensor,
    z: Tensor,
    n: Tensor,
    *,
    lr: float,
    lamda1: float = 0.01,
    beta: float = 1.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Tensor:
    """Follow the regularized leader: small weights become exactly 0; ``g = clip(rescale g)``.

    ``n' = n + g^2``;  ``z += g - (sqrt(n') - sqrt(n)) w / lr``;
    ``w = -sign(z) max(|z| - lamda1, 0) / ((beta + sqrt(n')) / lr + wd)``.

    >>> w, z, n = mx.nd.ones(2), mx.nd.zeros(2), mx.nd.zeros(2)
    >>> g = mx.nd.array([-1, 0.001])
    >>> mx.nd.ftrl_update(w, g, z, n, lr=1.0, lamda1=0.5).asnumpy()
    array([0.75, 0.  ], dtype=float32)
    """
    check_shapes("ftrl_update", weight, grad, z, n)
    _check_rate("ftrl_update", lr)
    grad = rescaled(grad, rescale_grad, clip_gradient)
    old = n.sqrt()
    root = n.addcmul_(grad, grad).sqrt()
    z.add_(grad).addcmul_(root - old, weight, value=-1.0 / lr)
    # beyond a threshold z loses it, within it nothing is left
    shrunk = torch.nn.functional.softshrink(z, lamda1) if lamda1 >= 0 else z + z.sign() * -lamda1
    return torch.rsub(shrunk, 0.0).div_(root.add_(beta).div_(lr).add_(wd))


def _within(weight: Tensor, limit: float) -> Tensor:
    return weight.clamp_(-limit, limit) if limit >= 0 else weight


@op("rmsprop_update", auto_inputs=False, shape=same, mutates=("n",))
def rmsprop_update(
    weight: Tensor,
    grad: Tensor,
    n: Tensor,
    *,
    lr: float,
    gamma1: float = 0.95,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
) -> Tensor:
    """Divide by a running root mean square: ``w -= lr g / sqrt(n + eps)``.

    ``g = clip(rescale g + wd w)``;  ``n = gamma1 n + (1 - gamma1) g^2``; a non-negative
    ``clip_weights`` limits the new weight.

    >>> w, n = mx.nd.ones(1), mx.nd.zeros(1)
    >>> mx.nd.rmsprop_update(w, w, n, lr=0.25, gamma1=0.75).asnumpy()
    array([0.5], dtype=float32)
    """
    check_shapes("rmsprop_update", weight, grad, n)
    grad = decayed(grad, weight, rescale_grad, wd, clip_gradient)
    n.mul_(gamma1).addcmul_(grad, grad, value=1.0 - gamma1)
    root = torch.add(n, epsilon).sqrt_()
    return _within(torch.addcdiv(weight, grad, root, value=-lr), clip_weights)


@op("rmspropalex_update", auto_inputs=False, shape=same, mutates=("n", "g", "delta"))
def rmspropalex_update(
    weight: Tensor,
    grad: Tensor,
    n: Tensor,
    g: Tensor,
    delta: Tensor,
    *,
    lr: float,
    gamma1: float = 0.95,
    gamma2: float = 0.9,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
) -> Tensor:
    """Divide by a running standard deviation, with momentum: Graves' RMSProp.

    With ``x = clip(rescale grad + wd w)``: ``n = gamma1 n + (1 - gamma1) x^2``;
    ``g = gamma1 g + (1 - gamma1) x``;  ``delta = gamma2 delta - lr x / sqrt(n - g^2 + eps)``;
    ``w += delta``; a non-negative ``clip_weights`` limits the new weight.

    >>> w, n, g, delta = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.rmspropalex_update(w, w, n, g, delta, lr=0.25, gamma1=0.5).asnumpy()
    array([0.5], dtype=float32)
    """
    check_shapes("rmspropalex_update", weight, grad, n, g, delta)
    grad = decayed(grad, weight, rescale_grad, wd, clip_gradient)
    n.mul_(gamma1).addcmul_(grad, grad, value=1.0 - gamma1)
    g.mul_(gamma1).add_(grad, alpha=1.0 - gamma1)
    deviation = torch.addcmul(n, g, g, value=-1.0).add_(epsilon).sqrt_()
    delta.mul_(gamma2).addcdiv_(grad, deviation, value=-lr)
    return _within(weight + delta, clip_weights)


@op("_sparse_adagrad_update", auto_inputs=False, shape=same, mutates=("history",))
def adagrad_update(
    weight: Tensor,
    grad: Tensor,
    history: Tensor,
    *,
    lr: float,
    epsilon: float = 1e-7,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Tensor:
    """Divide by the root of all squares so far: ``h += g^2``;  ``w -= lr g / sqrt(h + eps)``.

    >>> w, h = mx.nd.ones(1), mx.nd.zeros(1)
    >>> mx.nd.sparse.adagrad_update(w, w, h, lr=0.5).asnumpy()
    array([0.5], dtype=float32)
    """
    check_shapes("_sparse_adagrad_update", weight, grad, history)
    if wd:
        raise MXNetError(f"_sparse_adagrad_update takes no weight decay: wd={wd}, give wd=0.")
    grad = rescaled(grad, rescale_grad, clip_gradient)
    history.addcmul_(grad, grad)
    return torch.addcdiv(weight, grad, torch.add(history, epsilon).sqrt_(), value=-lr)


@op("_contrib_group_adagrad_update", auto_inputs=False, mutates=("history",))
def group_adagrad_update(
    weight: Tensor,
    grad: Tensor,
    history: Tensor,
    *,
    lr: float,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    epsilon: float = 1e-5,
) -> Tensor:
    """Do AdaGrad's step with one history number a row: ``h += mean(g^2)`` over each row.

    >>> w, h = mx.nd.ones((1, 2)), mx.nd.zeros((1, 1))
    >>> mx.nd.contrib.group_adagrad_update(w, w, h, lr=0.5, epsilon=0).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    check_shapes("_contrib_group_adagrad_update", weight, grad)
    rows = weight.shape[0]
    if history.numel() != rows:
        raise ShapeError(
            f"_contrib_group_adagrad_update: history must hold one number for each of the "
            f"{rows} rows of weight, got {tuple(history.shape)}."
        )
    grad = rescaled(grad, rescale_grad, clip_gradient)
    flat = grad.reshape(rows, -1)
    history.add_(torch.linalg.vecdot(flat, flat).div_(flat.shape[1]).reshape(history.shape))
    root = torch.add(history, epsilon).sqrt_().reshape(-1, *[1] * (weight.dim() - 1))
    return torch.addcdiv(weight, grad, root, value=-lr)


@group_adagrad_update.infer_outputs
def group_adagrad_outputs(weight, *_, **__):
    """Return the weight's shape."""
    return weight
