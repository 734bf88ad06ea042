"""Steps of whole optimizers over lists of weights, in place: what `mxnet.optimizer` calls.

All weights of a list share data type, device, learning rate and weight decay. Where a scaled or
clipped copy of the gradients is needed, the lists are walked in `CHUNK`s, so that each copy is
used while it is still in the cache, and its memory is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from .steps import _FUSED_SGD_TYPES, _laid_out, adam_, all_rescaled, can_fuse, count_change

CHUNK = 32
Tensors = Sequence[Tensor]


def in_chunks(step: Callable[..., None], *lists: Tensors) -> None:
    """Call a step with pieces of the lists, one after the other.

    >>> in_chunks(lambda w: [x.add_(1) for x in w], weights := [torch.zeros(1)] * 40)
    >>> weights[0]
    tensor([40.])
    """
    count = len(lists[0])
    if count <= CHUNK:
        step(*lists)
        return
    for start in range(0, count, CHUNK):
        step(*(tensors[start : start + CHUNK] for tensors in lists))


def decayed(
    grads: Tensors, weights: Tensors, rescale_grad: float, wd: float, clip_gradient: float
) -> Tensors:
    """Return ``clip(rescale g + wd w)`` of each; perhaps the gradients themselves."""
    if not wd:
        return all_rescaled(grads, rescale_grad, clip_gradient)
    if rescale_grad == 1.0:
        grads = torch._foreach_add(grads, weights, alpha=wd)
    else:
        grads = torch._foreach_mul(grads, rescale_grad)
        torch._foreach_add_(grads, weights, alpha=wd)
    return all_rescaled(grads, 1.0, clip_gradient)


def _fused_sgd(
    weights: Tensors, grads: Tensors, moms: Tensors, *, lr: float, gain: float, wd: float, mu: float
) -> None:
    """Do ``m = mu m + gain (g + wd w)``;  ``w -= lr m`` in one pass; without states mu is 0."""
    torch._fused_sgd_(
        weights,
        _laid_out(grads, weights),
        moms,
        weight_decay=wd,
        momentum=mu,
        lr=lr,
        dampening=1.0 - gain,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    )
    count_change(weights)


def _fusible(weights: Tensors, *states: Tensors) -> bool:
    return weights[0].dtype in _FUSED_SGD_TYPES and can_fuse(weights, *states)


def sgd_step_(
    weights: Tensors,
    grads: Tensors,
    moms: Tensors | None,
    *,
    lr: float,
    wd: float,
    momentum: float,
    rescale_grad: float,
    clip_gradient: float,
    nesterov: bool = False,
) -> None:
    """Go down the gradient ``g = clip(rescale g)``, with momentum if there are states for it.

    ``m = mu m - lr (g + wd w)``;  ``w += m``, or Nesterov's step as `nag_mom_update` tells it.
    """
    step = nesterov_ if nesterov and moms is not None else _descend_
    if clip_gradient < 0 and rescale_grad:
        # The factor goes into the rate: lr (r g + wd w) = (lr r) (g + (wd / r) w).
        step(weights, grads, moms, lr * rescale_grad, wd / rescale_grad, momentum)
        return

    def piece(weights: Tensors, grads: Tensors, *moms: Tensors) -> None:
        grads = all_rescaled(grads, rescale_grad, clip_gradient)
        step(weights, grads, moms[0] if moms else None, lr, wd, momentum)

    in_chunks(piece, weights, grads, *([] if moms is None else [moms]))


def _descend_(
    weights: Tensors, grads: Tensors, moms: Tensors | None, lr: float, wd: float, momentum: float
) -> None:
    if moms is None:
        if _fusible(weights):
            _fused_sgd(weights, grads, [], lr=lr, gain=1.0, wd=wd, mu=0.0)
            return
        if wd:
            torch._foreach_mul_(weights, 1.0 - lr * wd)
        torch._foreach_add_(weights, grads, alpha=-lr)
    elif momentum and _fusible(weights, moms):
        # torch keeps the rate out of the momentum, MXNet keeps it in
        _fused_sgd(weights, grads, moms, lr=-1.0, gain=-lr, wd=wd, mu=momentum)
    else:
        _move_momentum_(weights, grads, moms, lr, wd, momentum)
        torch._foreach_add_(weights, moms)


def _move_momentum_(
    weights: Tensors, grads: Tensors, moms: Tensors, lr: float, wd: float, momentum: float
) -> None:
    torch._foreach_mul_(moms, momentum)
    torch._foreach_add_(moms, grads, alpha=-lr)
    if wd:
        torch._foreach_add_(moms, weights, alpha=-lr * wd)


def nesterov_(
    weights: Tensors, grads: Tensors, moms: Tensors, lr: float, wd: float, momentum: float
) -> None:
    """Move weights, then momentum, whose decay sees the moved weights, as in 1.9.1.

    ``w += mu^2 m - (1 + mu) lr (g + wd w)``;  ``m = mu m - lr (g + wd w)``.
    """
    _descend_(weights, grads, None, (1.0 + momentum) * lr, wd, 0.0)
    torch._foreach_add_(weights, moms, alpha=momentum * momentum)
    if momentum and _fusible(weights, moms):
        _fused_sgd(weights, grads, moms, lr=0.0, gain=-lr, wd=wd, mu=momentum)
    else:
        _move_momentum_(weights, grads, moms, lr, wd, momentum)


def adam_step_(
    weights: Tensors,
    grads: Tensors,
    means: Tensors,
    variances: Tensors,
    *,
    wd: float,
    rescale_grad: float,
    clip_gradient: float,
    **numbers: float,
) -> None:
    """Do `adam_` with ``g = clip(rescale g + wd w)``; numbers are its rate, betas and epsilon."""
    if rescale_grad == 1.0 and clip_gradient < 0:
        adam_(weights, grads, means, variances, wd=wd, **numbers)
        return

    def piece(weights: Tensors, grads: Tensors, means: Tensors, variances: Tensors) -> None:
        if clip_gradient >= 0:
            grads = decayed(grads, weights, rescale_grad, wd, clip_gradient)
            adam_(weights, grads, means, variances, **numbers)
        else:
            grads = torch._foreach_mul(grads, rescale_grad)
            adam_(weights, grads, means, variances, wd=wd, **numbers)

    in_chunks(piece, weights, grads, means, variances)


def rmsprop_(
    weights: Tensors,
    grads: Tensors,
    squares: Tensors,
    *,
    lr: float,
    gamma1: float,
    epsilon: float,
    wd: float,
    rescale_grad: float,
    clip_gradient: float,
    clip_weights: float,
) -> None:
    """Do `rmsprop_update` for each weight."""

    def piece(weights: Tensors, grads: Tensors, squares: Tensors) -> None:
        grads = decayed(grads, weights, rescale_grad, wd, clip_gradient)
        torch._foreach_mul_(squares, gamma1)
        torch._foreach_addcmul_(squares, grads, grads, 1.0 - gamma1)
        roots = torch._foreach_add(squares, epsilon)
        torch._foreach_sqrt_(roots)
        torch._foreach_addcdiv_(weights, grads, roots, -lr)
        if clip_weights >= 0:
            torch._foreach_clamp_max_(weights, clip_weights)
            torch._foreach_clamp_min_(weights, -clip_weights)

    in_chunks(piece, weights, grads, squares)


def adagrad_(
    weights: Tensors,
    grads: Tensors,
    history: Tensors,
    *,
    lr: float,
    epsilon: float,
    wd: float,
    rescale_grad: float,
    clip_gradient: float,
) -> None:
    """Divide by the root of all squares so far; decay stands beside: ``w -= lr (step + wd w)``."""

    def piece(weights: Tensors, grads: Tensors, history: Tensors) -> None:
        grads = all_rescaled(grads, rescale_grad, clip_gradient)
        torch._foreach_addcmul_(history, grads, grads)
        roots = torch._foreach_add(history, epsilon)
        torch._foreach_sqrt_(roots)
        if wd:
            torch._foreach_mul_(weights, 1.0 - lr * wd)
        torch._foreach_addcdiv_(weights, grads, roots, -lr)

    in_chunks(piece, weights, grads, history)


def adadelta_(
    weights: Tensors,
    grads: Tensors,
    squares: Tensors,
    moves: Tensors,
    *,
    rho: float,
    epsilon: float,
    wd: float,
    rescale_grad: float,
    clip_gradient: float,
) -> None:
    """Step by the ratio of running sizes of past moves and gradients; there is no rate."""

    def piece(weights: Tensors, grads: Tensors, squares: Tensors, moves: Tensors) -> None:
        grads = all_rescaled(grads, rescale_grad, clip_gradient)
        torch._foreach_mul_(squares, rho)
        torch._foreach_addcmul_(squares, grads, grads, 1.0 - rho)
        step = torch._foreach_add(moves, epsilon)
        torch._foreach_div_(step, torch._foreach_add(squares, epsilon))
        torch._foreach_sqrt_(step)
        torch._foreach_mul_(step, grads)
        torch._foreach_mul_(moves, rho)
        torch._foreach_addcmul_(moves, step, step, 1.0 - rho)
        if wd:
            torch._foreach_mul_(weights, 1.0 - wd)
        torch._foreach_sub_(weights, step)

    in_chunks(piece, weights, grads, squares, moves)


def adamax_(
    weights: Tensors,
    grads: Tensors,
    means: Tensors,
    largest: Tensors,
    *,
    lr: float,
    beta1: float,
    beta2: float,
    wd: float,
    rescale_grad: float,
    clip_gradient: float,
) -> None:
    """Divide by the largest gradient so far, which fades: ``u = max(b2 u, |g|)``.

    Where no gradient came yet nothing moves; 1.9.1 makes nan there.
    """

    def piece(weights: Tensors, grads: Tensors, means: Tensors, largest: Tensors) -> None:
        grads = decayed(grads, weights, rescale_grad, wd, clip_gradient)
        torch._foreach_mul_(means, beta1)
        torch._foreach_add_(means, grads, alpha=1.0 - beta1)
        torch._foreach_mul_(largest, beta2)
        torch._foreach_maximum_(largest, torch._foreach_abs(grads))
        below = torch._foreach_clamp_min(largest, torch.finfo(weights[0].dtype).tiny)
        torch._foreach_addcdiv_(weights, means, below, -lr)

    in_chunks(piece, weights, grads, means, largest)


def lamb_(
    weights: Tensors,
    grads: Tensors,
    means: Tensors,
    variances: Tensors,
    *,
    lr: float,
    wd: float,
    t: int,
    beta1: float,
    beta2: float,
    epsilon: float,
    lower_bound: float,
    upper_bound: float,
    bias_correction: bool,
    rescale_grad: float,
    clip_gradient: float,
) -> None:
    """Take LAMB's whole step at update `t`: Adam's direction, as long as the weight's norm says."""
    missing1, missing2 = (1.0 - beta1**t, 1.0 - beta2**t) if bias_correction else (1.0, 1.0)
    root = missing2**0.5

    def piece(weights: Tensors, grads: Tensors, means: Tensors, variances: Tensors) -> None:
        grads = all_rescaled(grads, rescale_grad, clip_gradient)
        # Adam's step from 0, backwards: m / missing1 / (sqrt(v / missing2) + eps)
        directions = [torch.zeros_like(w) for w in weights]
        betas = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon * root}
        adam_(directions, grads, means, variances, lr=-root / missing1, **betas)
        if wd:
            torch._foreach_add_(directions, weights, alpha=wd)
        rates = trust_ratios(weights, directions, lower_bound, upper_bound).mul_(-lr)
        torch._foreach_mul_(directions, list(rates.unbind()))
        torch._foreach_add_(weights, directions)

    in_chunks(piece, weights, grads, means, variances)


def trust_ratios(
    weights: Tensors, directions: Tensors, lower_bound: float, upper_bound: float
) -> Tensor:
    """Return the norm of each weight, kept within bounds that are not negative, over its step's.

    Where a norm is 0 the ratio is 1.

    >>> trust_ratios([torch.tensor([3.0, 4.0])], [torch.tensor([0.0, 2.0])], -1, -1)
    tensor([2.5000])
    """
    norms = torch.stack(torch._foreach_norm([*weights, *directions]))
    above, below = norms.chunk(2)
    if lower_bound >= 0:
        above = above.clamp_min(lower_bound)
    if upper_bound >= 0:
        above = above.clamp_max(upper_bound)
    return torch.where((above == 0) | (below == 0), 1.0, above / below)


def layer_rates(
    weights: Tensors,
    grads: Tensors,
    *,
    wd: float,
    eta: float,
    epsilon: float,
    rescale_grad: float,
) -> list[float]:
    """Return LARS's factor for the rate of each weight: ``eta |w| / (|g| + wd |w| + eps)``.

    Where a norm is 0 the factor is 1.
    """
    norms = torch.stack([n.float() for n in torch._foreach_norm([*weights, *grads])]).tolist()
    above, below = norms[: len(weights)], norms[len(weights) :]
    return [
        eta * w / (g * rescale_grad + wd * w + epsilon) if w > 0 and g > 0 else 1.0
        for w, g in zip(above, below, strict=True)
    ]
