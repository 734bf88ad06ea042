"""Batches on another device, or in memory that a GPU can read directly."""

from __future__ import annotations

from typing import Any

import torch

from ...context import Context
from ...imperative.handle import plain, wrap_plain
from ...ndarray import NDArray


def pinned(batch: Any, ctx: Context) -> Any:
    """Return a batch with its arrays in pinned memory; where there is no GPU, in name only."""
    if isinstance(batch, NDArray):
        tensor = plain(batch)
        if torch.cuda.is_available():
            tensor = tensor.pin_memory()
        return wrap_plain(type(batch), tensor, ctx)
    if isinstance(batch, list | tuple):
        return [pinned(part, ctx) for part in batch]
    return batch


def _as_in_context(data: Any, ctx: Context) -> Any:
    """Return data with its arrays on another device; tuples become lists, as in MXNet."""
    if ctx.device_type == "cpu_pinned":
        return pinned(data, ctx)
    if isinstance(data, NDArray):
        return data.as_in_context(ctx)
    if isinstance(data, list | tuple):
        return [_as_in_context(part, ctx) for part in data]
    return data
