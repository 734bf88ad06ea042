"""NumPy's indexing of tensors; as in MXNet, contiguous basic slices are views."""

from __future__ import annotations

from typing import Any

import numpy as onp
import torch
from torch import Tensor

from .. import dtypes
from ..ndarray import indexing
from ..runtime.array import Handle, plain


def read(tensor: Tensor, key: Any) -> Tensor:
    """Return the part of a tensor that a key selects."""
    if type(key) is slice and tensor.ndim:
        return indexing.read(tensor, key, keep_scalar=True)
    if not tensor.ndim and not _is_for_scalar(key):
        raise IndexError("scalar tensor can only accept `()` as index")
    tensor, key, flips = normalize(tensor, key)
    part = tensor[key]
    if flips:
        part = part.flip(flips)
    return part if part.is_contiguous() else part.contiguous()


def write(tensor: Tensor, key: Any, value: Any) -> None:
    """Write a number, an array or a nested list into the part that a key selects."""
    if not tensor.ndim and not _is_for_scalar(key):
        raise IndexError("scalar tensor can only accept `()` as index")
    tensor, key, flips = normalize(tensor, key)
    indexing.write_part(tensor, key, flips, value)


def _is_for_scalar(key: Any) -> bool:
    items = key if isinstance(key, tuple) else (key,)
    return all(item is None or item is Ellipsis or _is_mask(item) for item in items)


def _is_mask(item: Any) -> bool:
    if isinstance(item, bool | onp.bool_):
        return True
    if isinstance(item, Handle):
        return item._dtype is torch.bool
    if isinstance(item, Tensor):
        return item.dtype is torch.bool
    if isinstance(item, onp.ndarray):
        return item.dtype == bool
    return isinstance(item, list) and bool(item) and _holds_bools(item)


def _holds_bools(item: Any) -> bool:
    while isinstance(item, list | tuple) and item:
        item = item[0]
    return isinstance(item, bool | onp.bool_)


def _mask_indices(item: Any, device: torch.device) -> tuple[Tensor, ...]:
    if isinstance(item, Handle):
        mask = plain(item)
    elif isinstance(item, Tensor):
        mask = item
    else:
        mask = dtypes.from_numpy(onp.asarray(item, dtype=bool))
    return mask.to(device).nonzero(as_tuple=True)


def normalize(tensor: Tensor, key: Any) -> tuple[Tensor, tuple, list[int]]:
    """Return a view of the tensor, a key for torch, and the axes of the result to flip.

    The view differs from the tensor if a single bool adds an axis.
    """
    items = key if isinstance(key, tuple) else (key,)
    if any(_is_mask(item) for item in items):
        tensor, key = _without_masks(tensor, items)
    return tensor, *indexing.normalize(tensor, key)


def _without_masks(tensor: Tensor, items: tuple) -> tuple[Tensor, tuple]:
    parts: list[Any] = []
    covered = sum(_axes_of(item) for item in items)
    axis = 0
    for item in items:
        if item is Ellipsis:
            rest = tensor.ndim - covered
            parts += [slice(None)] * rest
            axis += rest
        elif not _is_mask(item):
            parts.append(item)
            axis += item is not None
        elif _axes_of(item):
            indices = _mask_indices(item, tensor.device)
            _check_mask(item, tensor, axis)
            parts += indices
            axis += len(indices)
        else:  # a single bool adds an axis, of size 1 or 0
            tensor = tensor.unsqueeze(axis)
            parts.append(torch.zeros(int(bool(item)), dtype=torch.int64))
            axis += 1
    return tensor, tuple(parts)


def _axes_of(item: Any) -> int:
    if item is None or item is Ellipsis:
        return 0
    if not _is_mask(item):
        return 1
    return item.ndim if hasattr(item, "ndim") else onp.ndim(item)


def _check_mask(item: Any, tensor: Tensor, axis: int) -> None:
    shape = tuple(item.shape) if hasattr(item, "shape") else onp.shape(item)
    part = tuple(tensor.shape[axis : axis + len(shape)])
    if shape != part:
        raise IndexError(
            f"boolean index did not match indexed array: its shape is {shape}, that of the axes "
            f"it covers is {part}."
        )
