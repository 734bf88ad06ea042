"""Torch's fused optimizer kernels: one pass over all weights.

The functions return False and change nothing if the kernels, which ignore strides, do not apply.
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
    """Compute ``m = mu m + gain (g + wd w)``;  ``w -= lr m``; `moms` may be None."""
    if isinstance(weights, Tensor):
        if _is_small(weights) or (moms is None and not wd):
            return False  # separate operations are faster
        weights, grads = as_list(weights), as_list(grads)
    if moms is not None and not momentum:  # the kernel would not update the moments
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
    # These kernels do not increase version counters, on which prepared weights rely.
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
    """Compute Adam's update without bias correction; with `decoupled`, AdamW's weight decay."""
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
    # These kernels do not increase version counters, on which prepared weights rely.
    increment_version(weights)
    return True


@lru_cache(maxsize=64)
def _infinite_step(device: torch.device) -> Tensor:
    """Return a step count at which torch's bias correction has no effect."""
    return torch.tensor(float("inf"), device=device)


def _is_small(weights: Tensor) -> bool:
    """Return whether there is only one tensor that is too small for the kernel's overhead."""
    return weights.numel() < 4096


def _is_dense(tensor: Tensor) -> bool:
    return tensor.is_contiguous() or (
        tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    )


def _match_strides(
    grads: TensorList, weights: TensorList, *states: TensorList
) -> Sequence[Tensor] | None:
    """Return the gradients with the strides of their weights.

    None if the kernels do not apply: weights are not dense in memory, or strides of states differ.
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
