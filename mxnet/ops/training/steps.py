"""One optimizer step over many weights at once, in place: the kernels under the update operators.

Weights that share learning rate and weight decay go through one fused call. Operators give
fresh weights, so they hand in copies; optimizers may hand in the weights themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import torch
from torch import Tensor
from torch.autograd.graph import increment_version as _increment_version

from ...error import ShapeError

_FUSED_SGD_TYPES = (torch.float32, torch.float64)


def check_shapes(name: str, weight: Tensor, *others: Tensor) -> None:
    """Refuse gradients and states that torch would quietly broadcast."""
    for other in others:
        if other.shape != weight.shape:
            raise ShapeError(
                f"Shape inconsistent in {name}: the weight is {tuple(weight.shape)}, so its "
                f"gradient and states must be too, but one is {tuple(other.shape)}."
            )


def rescaled(grad: Tensor, rescale_grad: float, clip_gradient: float) -> Tensor:
    """Return the gradient times ``rescale_grad``, then clipped if the limit is not negative.

    The result may be `grad` itself: it is not for changing in place.
    """
    if rescale_grad != 1.0:
        grad = grad * rescale_grad
    if clip_gradient >= 0:
        grad = grad.clamp(-clip_gradient, clip_gradient)
    return grad


def all_rescaled(
    grads: Sequence[Tensor], rescale_grad: float, clip_gradient: float
) -> Sequence[Tensor]:
    """Return `rescaled` of each gradient, all at once."""
    if rescale_grad != 1.0:
        grads = torch._foreach_mul(grads, rescale_grad)
    if clip_gradient >= 0:
        grads = torch._foreach_clamp_max(grads, clip_gradient)
        torch._foreach_clamp_min_(grads, -clip_gradient)
    return grads


def alike(*keys: Sequence) -> Iterator[tuple[tuple, list[int]]]:
    """Yield (values, positions) for positions at which all sequences agree.

    >>> list(alike((0.1, 0.2, 0.1), (0.0, 0.0, 0.0)))
    [((0.1, 0.0), [0, 2]), ((0.2, 0.0), [1])]
    """
    groups: dict[tuple, list[int]] = {}
    for position, values in enumerate(zip(*keys, strict=True)):
        groups.setdefault(values, []).append(position)
    yield from groups.items()


def _all_plain(tensors: Sequence[Tensor]) -> bool:
    return all(map(Tensor.is_contiguous, tensors))


def _is_dense(tensor: Tensor) -> bool:
    return tensor.is_contiguous() or (
        tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    )


def can_fuse(weights: Sequence[Tensor], *states: Sequence[Tensor]) -> bool:
    """Return whether fused kernels may run: they walk memory and do not look at strides."""
    if _all_plain(weights) and all(map(_all_plain, states)):
        return True
    for weight, *own in zip(weights, *states, strict=True):
        if not _is_dense(weight):
            return False
        strides = weight.stride()
        for state in own:
            if state.stride() != strides:
                return False
    return True


def _laid_out(grads: Sequence[Tensor], weights: Sequence[Tensor]) -> Sequence[Tensor]:
    """Return the gradients with the strides of their weights."""
    if _all_plain(grads) and _all_plain(weights):
        return grads
    return [
        g if g.stride() == w.stride() else torch.empty_like(w).copy_(g)
        for g, w in zip(grads, weights, strict=True)
    ]


def sgd_(weights: Sequence[Tensor], grads: Sequence[Tensor], lr: float, wd: float) -> None:
    """Go down the gradient: ``w = (1 - lr wd) w - lr g``."""
    if wd:
        torch._foreach_mul_(weights, 1.0 - lr * wd)
    torch._foreach_add_(weights, grads, alpha=-lr)


def _counts_lists() -> bool:
    """Return whether torch's counter takes many tensors at once, as it does since 2.6."""
    try:
        _increment_version([])
    except RuntimeError:
        return False
    return True


_COUNTS_LISTS = _counts_lists()


def count_change(weights: Sequence[Tensor]) -> None:
    """Tell torch that weights were written: its fused kernels do not say so themselves.

    Prepared graphs look at these counters to see whether their copies of weights are still good.
    """
    if _COUNTS_LISTS:
        _increment_version(weights)
    else:
        for weight in weights:
            _increment_version(weight)


def sgd_momentum_(
    weights: Sequence[Tensor],
    grads: Sequence[Tensor],
    moms: Sequence[Tensor],
    lr: float,
    wd: float,
    momentum: float,
) -> None:
    """Go down with momentum: ``m = mu m - lr (g + wd w)``;  ``w += m``; no list is empty."""
    if momentum and weights[0].dtype in _FUSED_SGD_TYPES and can_fuse(weights, moms):
        # torch steps by -rate * buffer and keeps the rate out of the buffer; MXNet keeps it in:
        # a rate of -1 and 1 - dampening = -lr say the same.
        torch._fused_sgd_(
            weights,
            _laid_out(grads, weights),
            moms,
            weight_decay=wd,
            momentum=momentum,
            lr=-1.0,
            dampening=1.0 + lr,
            nesterov=False,
            maximize=False,
            is_first_step=False,
        )
        count_change(weights)
        return
    torch._foreach_mul_(moms, momentum)
    torch._foreach_add_(moms, grads, alpha=-lr)
    if wd:
        torch._foreach_add_(moms, weights, alpha=-lr * wd)
    torch._foreach_add_(weights, moms)


@lru_cache(maxsize=64)
def _endless(device: torch.device) -> Tensor:
    """Return the step count at which torch's own bias correction is none."""
    return torch.tensor(float("inf"), device=device)


def adam_(
    weights: Sequence[Tensor],
    grads: Sequence[Tensor],
    means: Sequence[Tensor],
    variances: Sequence[Tensor],
    *,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    decay: float = 0.0,
    wd: float = 0.0,
) -> None:
    """Take Adam's step without bias correction, which MXNet puts into the learning rate.

    ``m = b1 m + (1 - b1) g``;  ``v = b2 v + (1 - b2) g^2``;  ``w -= lr m / (sqrt(v) + eps)``,
    where ``g`` holds ``wd w`` already, and ``w`` is first scaled by ``1 - decay``.
    """
    # the kernel divides by 1 - beta ** inf, which is 1 only for these
    fused = beta1 < 1.0 and beta2 < 1.0 and can_fuse(weights, means, variances)
    beside = fused and decay and lr and not wd  # the kernel of AdamW decays as it goes
    if decay and not beside:
        torch._foreach_mul_(weights, 1.0 - decay)
    if not fused:
        if wd:
            grads = torch._foreach_add(grads, weights, alpha=wd)
        torch._foreach_lerp_(means, grads, 1.0 - beta1)
        torch._foreach_mul_(variances, beta2)
        torch._foreach_addcmul_(variances, grads, grads, 1.0 - beta2)
        below = torch._foreach_sqrt(variances)
        torch._foreach_add_(below, epsilon)
        torch._foreach_addcdiv_(weights, means, below, -lr)
        return
    step, pull = (torch._fused_adamw_, decay / lr) if beside else (torch._fused_adam_, wd)
    step(
        weights,
        _laid_out(grads, weights),
        means,
        variances,
        [],
        [_endless(weights[0].device)] * len(weights),
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        weight_decay=pull,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
    )
    count_change(weights)
