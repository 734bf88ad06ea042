"""Adaptive update rules: RMSProp, AdaGrad, AdaDelta, FTRL.

Operators return the new weight and change their states in place; call them with ``out=weight``.
A negative ``clip_gradient`` disables clipping.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ...error import ShapeError
from .adam import check_rate
from .rules import TensorList, as_list, decay_gradient, rule, scale_gradient

__all__ = ["adadelta", "adagrad", "ftrl", "group_adagrad", "rmsprop", "rmspropalex"]


@rule()
def rmsprop(
    weight: TensorList,
    grad: TensorList,
    n: TensorList,
    *,
    lr: float,
    gamma1: float = 0.95,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
) -> None:
    """Compute RMSProp's update: ``w -= lr g / sqrt(n + eps)``.

    ``g = clip(rescale g + wd w)``;  ``n = gamma1 n + (1 - gamma1) g^2``; a non-negative
    ``clip_weights`` limits the new weight.

    Parameters
    ----------
    n
        The running mean of the squared gradient, updated in place.

    >>> w, n = mx.nd.ones(1), mx.nd.zeros(1)
    >>> mx.nd.rmsprop_update(w, w, n, lr=0.25, gamma1=0.75).asnumpy()
    array([0.5], dtype=float32)
    """
    grad = decay_gradient(grad, weight, wd, rescale_grad, clip_gradient)
    n.mul_(gamma1).addcmul_(grad, grad, value=1.0 - gamma1)
    weight.addcdiv_(grad, n.add(epsilon).sqrt_(), value=-lr)
    if clip_weights >= 0:
        weight.clamp_(-clip_weights, clip_weights)


@rule()
def rmspropalex(
    weight: TensorList,
    grad: TensorList,
    n: TensorList,
    g: TensorList,
    delta: TensorList,
    *,
    lr: float,
    gamma1: float = 0.95,
    gamma2: float = 0.9,
    epsilon: float = 1e-8,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    clip_weights: float = -1.0,
) -> None:
    """Compute the update of Graves' centered RMSProp with momentum.

    With ``x = clip(rescale grad + wd w)``: ``n = gamma1 n + (1 - gamma1) x^2``;
    ``g = gamma1 g + (1 - gamma1) x``;  ``delta = gamma2 delta - lr x / sqrt(n - g^2 + eps)``;
    ``w += delta``; a non-negative ``clip_weights`` limits the new weight.

    Parameters
    ----------
    n
        The running mean of the squared gradient, updated in place.
    g
        The running mean of the gradient, updated in place.
    delta
        The last step, updated in place.
    gamma2
        Momentum of the updates.

    >>> w, n, g, delta = mx.nd.ones(1), mx.nd.zeros(1), mx.nd.zeros(1), mx.nd.zeros(1)
    >>> mx.nd.rmspropalex_update(w, w, n, g, delta, lr=0.25, gamma1=0.5).asnumpy()
    array([0.5], dtype=float32)
    """
    grad = decay_gradient(grad, weight, wd, rescale_grad, clip_gradient)
    n.mul_(gamma1).addcmul_(grad, grad, value=1.0 - gamma1)
    g.mul_(gamma1).add_(grad, alpha=1.0 - gamma1)
    deviation = n.addcmul(g, g, value=-1.0).add_(epsilon).sqrt_()
    weight.add_(delta.mul_(gamma2).addcdiv_(grad, deviation, value=-lr))
    if clip_weights >= 0:
        weight.clamp_(-clip_weights, clip_weights)


@rule()
def adagrad(
    weight: TensorList,
    grad: TensorList,
    history: TensorList,
    *,
    lr: float,
    epsilon: float = 1e-7,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> None:
    """Compute AdaGrad's update: ``h += g^2``;  ``w -= lr g / sqrt(h + eps)``.

    >>> w, h = mx.nd.ones(1), mx.nd.zeros(1)
    >>> mx.nd.sparse.adagrad_update(w, w, h, lr=0.5).asnumpy()
    array([0.5], dtype=float32)
    """
    grad = scale_gradient(grad, rescale_grad, clip_gradient)
    history.addcmul_(grad, grad)
    if wd:
        weight.mul_(1.0 - lr * wd)
    weight.addcdiv_(grad, history.add(epsilon).sqrt_(), value=-lr)


@rule(same_shapes=False)
def group_adagrad(
    weight: TensorList,
    grad: TensorList,
    history: TensorList,
    *,
    lr: float,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
    epsilon: float = 1e-5,
) -> None:
    """Compute AdaGrad's update with one history value per row: ``h += mean(g^2)``.

    Parameters
    ----------
    history
        The sum ``h`` of mean squared gradients of each row, of shape ``(rows, 1)``; updated in
        place.

    >>> w, h = mx.nd.ones((1, 2)), mx.nd.zeros((1, 1))
    >>> mx.nd.contrib.group_adagrad_update(w, w, h, lr=0.5, epsilon=0).asnumpy()
    array([[0.5, 0.5]], dtype=float32)
    """
    weight, grad, history = as_list(weight), as_list(grad), as_list(history)
    for w, h in zip(weight, history, strict=True):
        if h.numel() != len(w):
            raise ShapeError(
                f"_contrib_group_adagrad_update: history must have one element for each of the "
                f"{len(w)} rows of weight, got {tuple(h.shape)}."
            )
    grad = scale_gradient(grad, rescale_grad, clip_gradient)
    history.add_([_mean_squares(g).reshape(h.shape) for g, h in zip(grad, history, strict=True)])
    roots = history.add(epsilon).sqrt_()
    columns = [r.reshape(-1, *[1] * (w.dim() - 1)) for r, w in zip(roots, weight, strict=True)]
    weight.addcdiv_(grad, columns, value=-lr)


def _mean_squares(grad: Tensor) -> Tensor:
    rows = grad.reshape(len(grad), -1)
    return torch.linalg.vecdot(rows, rows).div_(rows.shape[1])


@rule()
def adadelta(
    weight: TensorList,
    grad: TensorList,
    squares: TensorList,
    moves: TensorList,
    *,
    rho: float,
    epsilon: float,
    wd: float,
    rescale_grad: float,
    clip_gradient: float,
) -> None:
    """Compute AdaDelta's update, which has no learning rate.

    ``s = rho s + (1 - rho) g^2``;  ``d = sqrt(a + eps) / sqrt(s + eps) g``;
    ``a = rho a + (1 - rho) d^2``;  ``w -= d + wd w``.
    """
    grad = scale_gradient(grad, rescale_grad, clip_gradient)
    squares.mul_(rho).addcmul_(grad, grad, value=1.0 - rho)
    step = moves.add(epsilon).div_(squares.add(epsilon)).sqrt_().mul_(grad)
    moves.mul_(rho).addcmul_(step, step, value=1.0 - rho)
    if wd:
        weight.mul_(1.0 - wd)
    weight.sub_(step)


@rule()
def ftrl(
    weight: TensorList,
    grad: TensorList,
    z: TensorList,
    n: TensorList,
    *,
    lr: float,
    lamda1: float = 0.01,
    beta: float = 1.0,
    wd: float = 0.0,
    rescale_grad: float = 1.0,
    clip_gradient: float = -1.0,
) -> None:
    """Compute FTRL's update, with sparse weights; ``g = clip(rescale g)``.

    ``n' = n + g^2``;  ``z += g - (sqrt(n') - sqrt(n)) w / lr``;
    ``w = -sign(z) max(|z| - lamda1, 0) / ((beta + sqrt(n')) / lr + wd)``.

    Parameters
    ----------
    z
        The accumulated gradient, updated in place.
    n
        The sum of squared gradients, updated in place.
    lamda1
        Strength of the L1 penalty.
    beta
        Number added to the root of `n`.
    wd
        Strength of the L2 penalty.

    >>> w, z, n = mx.nd.ones(2), mx.nd.zeros(2), mx.nd.zeros(2)
    >>> g = mx.nd.array([-1, 0.001])
    >>> mx.nd.ftrl_update(w, g, z, n, lr=1.0, lamda1=0.5).asnumpy()
    array([0.75, 0.  ], dtype=float32)
    """
    check_rate("ftrl_update", lr)
    grad = scale_gradient(grad, rescale_grad, clip_gradient)
    old = n.sqrt()
    root = n.addcmul_(grad, grad).sqrt()
    z.add_(grad).addcmul_(root.sub(old), weight, value=-1.0 / lr)
    # soft thresholding of z
    loss = z.clamp(-lamda1, lamda1) if lamda1 >= 0 else z.sign().mul_(lamda1)
    weight.copy_(loss.sub_(z).div_(root.add_(beta).div_(lr).add_(wd)))


# -- operators --------------------------------------------------------------------------------

rmsprop_update = rmsprop.operator("rmsprop_update")
rmspropalex_update = rmspropalex.operator("rmspropalex_update")
ftrl_update = ftrl.operator("ftrl_update", "_sparse_ftrl_update")
adagrad_update = adagrad.operator("_sparse_adagrad_update", refuses=("wd",))
group_adagrad_update = group_adagrad.operator("_contrib_group_adagrad_update")


@group_adagrad_update.infer_outputs
def group_adagrad_outputs(weight, *_, **__):
    """Return the weight's shape."""
    return weight
