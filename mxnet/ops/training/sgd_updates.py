"""Updates by the gradient itself, its momentum or its sign.

Each returns the new weight and changes its states in place; call them with ``out=weight``.
A negative ``clip_gradient`` means no clipping.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..declare import op
from ..shapes import same
from .steps import check_shapes, rescaled, sgd_momentum_


@op("sgd_update", "_sparse_sgd_update", auto_inputs=False, shape=same)
def sgd_update(
    weight: Tensor,
    grad: Tensor,
    *,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
) -> Tensor:
    """Go down the gradient: ``w = (1 - lr wd) w - lr clip(rescale g)``.

    >>> mx.nd.sgd_update(mx.nd.array([1, 2]), mx.nd.array([1, -1]), lr=0.5).asnumpy()
    array([0.5, 2.5], dtype=float32)
    """
    check_shapes("sgd_update", weight, grad)
    if clip_gradient >= 0:
        grad, rescale_grad = rescaled(grad, rescale_grad, clip_gradient), 1.0
    if not wd:
        return torch.add(weight, grad, alpha=-lr * rescale_grad)
    return torch.mul(weight, 1.0 - lr * wd).add_(grad, alpha=-lr * rescale_grad)


@op(
    "sgd_mom_update",
    "_sparse_sgd_mom_update",
    auto_inputs=False,
    shape=same,
    mutates=("mom",),
)
def sgd_mom_update(
    weight: Tensor,
    grad: Tensor,
    mom: Tensor,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
) -> Tensor:
    """Go down with momentum: ``m = mu m - lr (clip(rescale g) + wd w)``;  ``w += m``.

    >>> m = mx.nd.array([1, 0])
    >>> mx.nd.sgd_mom_update(mx.nd.ones(2), mx.nd.ones(2), m, lr=0.5, momentum=0.5).asnumpy()
    array([1. , 0.5], dtype=float32)
    >>> m.asnumpy()
    array([ 0. , -0.5], dtype=float32)
    """
    check_shapes("sgd_mom_update", weight, grad, mom)
    if clip_gradient >= 0:
        grad, rescale_grad = rescaled(grad, rescale_grad, clip_gradient), 1.0
    mom.mul_(momentum).add_(grad, alpha=-lr * rescale_grad)
    if wd:
        mom.add_(weight, alpha=-lr * wd)
    return weight + mom


@op(
    "mp_sgd_update",
    auto_inputs=False,
    shape=same,
    types="T T F -> T",
    mutates=("weight32",),
)
def mp_sgd_update(
    weight: Tensor,
    grad: Tensor,
    weight32: Tensor,
    *,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
) -> Tensor:
    """Do `sgd_update` on a 32-bit copy of a 16-bit weight.

    >>> w, w32 = mx.nd.ones(2, dtype="float16"), mx.nd.ones(2)
    >>> mx.nd.mp_sgd_update(w, w, w32, lr=0.5).asnumpy(), w32.asnumpy()
    (array([0.5, 0.5], dtype=float16), array([0.5, 0.5], dtype=float32))
    """
    check_shapes("mp_sgd_update", weight, grad, weight32)
    grad = rescaled(grad.to(weight32.dtype), rescale_grad, clip_gradient)
    if wd:
        weight32.mul_(1.0 - lr * wd)
    return weight32.add_(grad, alpha=-lr).to(weight.dtype)


@op(
    "mp_sgd_mom_update",
    auto_inputs=False,
    shape=same,
    types="T T F F -> T",
    mutates=("mom", "weight32"),
)
def mp_sgd_mom_update(
    weight: Tensor,
    grad: Tensor,
    mom: Tensor,
    weight32: Tensor,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    lazy_update: bool = True,
) -> Tensor:
    """Do `sgd_mom_update` on a 32-bit copy of a 16-bit weight; momentum is 32-bit too.

    >>> w, m, w32 = mx.nd.ones(2, dtype="float16"), mx.nd.zeros(2), mx.nd.ones(2)
    >>> mx.nd.mp_sgd_mom_update(w, w, m, w32, lr=0.5, momentum=0.9).asnumpy()
    array([0.5, 0.5], dtype=float16)
    """
    check_shapes("mp_sgd_mom_update", weight, grad, mom, weight32)
    grad = rescaled(grad.to(weight32.dtype), rescale_grad, clip_gradient)
    sgd_momentum_([weight32], [grad], [mom], lr, wd, momentum)
    return weight32.to(weight.dtype)


def _nesterov_(
    new: Tensor, grad: Tensor, mom: Tensor, lr: float, momentum: float, wd: float
) -> Tensor:
    """Move a weight and then its momentum, whose decay sees the moved weight, as in 1.9.1."""
    new.mul_(1.0 - (momentum + 1.0) * lr * wd).add_(grad, alpha=-(momentum + 1.0) * lr)
    new.add_(mom, alpha=momentum * momentum)
    mom.mul_(momentum).add_(grad, alpha=-lr)
    if wd:
        mom.add_(new, alpha=-lr * wd)
    return new


@op("nag_mom_update", auto_inputs=False, shape=same, mutates=("mom",))
def nag_mom_update(
    weight: Tensor,
    grad: Tensor,
    mom: Tensor,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Tensor:
    """Do Nesterov's step: ``m = mu m - lr (g + wd w)``;  ``w += mu m - lr (g + wd w)``.

    >>> m = mx.nd.zeros(1)
    >>> mx.nd.nag_mom_update(mx.nd.ones(1), mx.nd.ones(1), m, lr=0.5, momentum=0.5).asnumpy()
    array([0.25], dtype=float32)
    """
    check_shapes("nag_mom_update", weight, grad, mom)
    grad = rescaled(grad, rescale_grad, clip_gradient)
    return _nesterov_(weight.clone(), grad, mom, lr, momentum, wd)


@op(
    "mp_nag_mom_update",
    auto_inputs=False,
    shape=same,
    types="T T F F -> T",
    mutates=("mom", "weight32"),
)
def mp_nag_mom_update(
    weight: Tensor,
    grad: Tensor,
    mom: Tensor,
    weight32: Tensor,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Tensor:
    """Do `nag_mom_update` on a 32-bit copy of a 16-bit weight; momentum is 32-bit too.

    >>> w, m, w32 = mx.nd.ones(1, dtype="float16"), mx.nd.zeros(1), mx.nd.ones(1)
    >>> mx.nd.mp_nag_mom_update(w, w, m, w32, lr=0.5, momentum=0.5).asnumpy()
    array([0.25], dtype=float16)
    """
    check_shapes("mp_nag_mom_update", weight, grad, mom, weight32)
    grad = rescaled(grad.to(weight32.dtype), rescale_grad, clip_gradient)
    return _nesterov_(weight32, grad, mom, lr, momentum, wd).to(weight.dtype)


@op("signsgd_update", auto_inputs=False, shape=same)
def signsgd_update(
    weight: Tensor,
    grad: Tensor,
    *,
    lr: float,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> Tensor:
    """Go one fixed step against the gradient's sign: ``w = (1 - lr wd) w - lr sign(g)``.

    >>> mx.nd.signsgd_update(mx.nd.ones(2), mx.nd.array([3, -0.1]), lr=0.5).asnumpy()
    array([0.5, 1.5], dtype=float32)
    """
    check_shapes("signsgd_update", weight, grad)
    return torch.mul(weight, 1.0 - lr * wd).add_(grad.sign(), alpha=-lr)


@op("signum_update", auto_inputs=False, shape=same, mutates=("mom",))
def signum_update(
    weight: Tensor,
    grad: Tensor,
    mom: Tensor,
    *,
    lr: float,
    momentum: float = 0.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    wd_lh: float = 0.0,
) -> Tensor:
    """Go one fixed step along the momentum's sign.

    ``m = mu m - (1 - mu) (clip(rescale g) + wd w)``;  ``w = (1 - lr wd_lh) w + lr sign(m)``.

    >>> m = mx.nd.zeros(2)
    >>> g = mx.nd.array([3, -0.1])
    >>> mx.nd.signum_update(mx.nd.ones(2), g, m, lr=0.5, momentum=0.5).asnumpy()
    array([0.5, 1.5], dtype=float32)
    """
    check_shapes("signum_update", weight, grad, mom)
    grad = rescaled(grad, rescale_grad, clip_gradient)
    mom.mul_(momentum).add_(grad, alpha=momentum - 1.0)
    if wd:
        mom.add_(weight, alpha=(momentum - 1.0) * wd)
    return torch.mul(weight, 1.0 - lr * wd_lh).add_(mom.sign(), alpha=lr)
