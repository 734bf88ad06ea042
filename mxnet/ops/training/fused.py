"""Torch's fused optimizer kernels: a whole step over all weights in one pass through memory.

The functions return False, and change nothing, where the kernels do not apply: they walk memory
without looking at strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from ...torch_private import fused_optimizers
from .rules import TensorList, as_list

_SGD_DTYPES = (torch.float32, torch.float64)


def fuse_sgd_(
    weights: TensorList,
    grads: TensorList,
    moms: TensorList | None = None,
    *,
    lr: float,
    gain: float = 1.0,
    wd: float,
    momentum: float = 0.0,
) -> bool:
    """Do ``m = mu m + gain (g + wd w)``;  ``w -= lr m``; without `moms`, ``m`` is not kept."""
    if isinstance(weights, Tensor):
        if _is_small(weights) or (moms is None and not wd):
            return False  # a few operations cost less
        weights, grads = as_list(weights), as_list(grads)
    if moms is not None and not momentum:  # the kernel would leave the moments alone
        return False
    states = () if moms is None else (as_list(moms),)
    matching = _match_strides(grads, weights, *states)
    if matching is None or weights[0].dtype not in _SGD_DTYPES or fused_optimizers is None:
        return False
    fused_optimizers.sgd_(
        weights,
        matching,
        *(states or ([],)),
        weight_decay=wd,
        momentum=momentum,
        lr=lr,
        dampening=1.0 - gain,
        nesterov=False,
        maximize=False,
        is_first_step=False,
    )
    # These kernels do not count their writes as others do; kept values of weights rely on it.
    increment_version(weights)
    return True


def fuse_adam_(
    weights: TensorList,
    grads: TensorList,
    means: TensorList,
    variances: TensorList,
    *,
    lr: float,
    beta1: float,
    beta2: float,
    epsilon: float,
    wd: float = 0.0,
    decoupled: bool = False,
) -> bool:
    """Take Adam's step without bias correction; `decoupled` decay is AdamW's."""
    if beta1 >= 1.0 or beta2 >= 1.0:  # the kernel divides by 1 - beta ** inf
        return False
    weights, grads = as_list(weights), as_list(grads)
    means, variances = as_list(means), as_list(variances)
    matching = _match_strides(grads, weights, means, variances)
    if matching is None or fused_optimizers is None:
        return False
    (fused_optimizers.adamw_ if decoupled else fused_optimizers.adam_)(
        weights,
        matching,
        means,
        variances,
        [],
        [_infinite_step(weights[0].device)] * len(weights),
        lr=lr,
        beta1=beta1,
        beta2=beta2,
        weight_decay=wd,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
    )
    # These kernels do not count their writes as others do; kept values of weights rely on it.
    increment_version(weights)
    return True


@lru_cache(maxsize=64)
def _infinite_step(device: torch.device) -> Tensor:
    """Return the step count at which torch's own bias correction has no effect."""
    return torch.tensor(float("inf"), device=device)


def _is_small(weights: Tensor) -> bool:
    """Return whether one tensor is so small that preparing the kernel costs more."""
    return weights.numel() < 4096


def _is_dense(tensor: Tensor) -> bool:
    return tensor.is_contiguous() or (
        tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    )


def _match_strides(
    grads: TensorList, weights: TensorList, *states: TensorList
) -> Sequence[Tensor] | None:
    """Return the gradients with the strides of their weights.

    None if the kernels cannot walk the weights: they are not dense in memory, or their states have
    other strides.
    """
    lists = (weights, *states)
    is_contiguous = True
    for tensors in lists:
        known = tensors._contiguous
        is_contiguous &= tensors.is_contiguous() if known is None else known
    if not is_contiguous and not all(
        _is_dense(weight) and all(state.stride() == weight.stride() for state in own)
        for weight, *own in zip(*lists, strict=True)
    ):
        return None
    known = grads._contiguous
    if is_contiguous and (grads.is_contiguous() if known is None else known):
        return grads
    return [
        g if g.stride() == w.stride() else torch.empty_like(w).copy_(g)
        for g, w in zip(grads, weights, strict=True)
    ]
