"""The data of training objects: what a checkpoint keeps of optimizers, schedulers and metrics."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from ..error import FormatError
from ..imperative.handle import plain, wrap_plain
from ..lr_scheduler import LRScheduler
from ..metric import EvalMetric
from ..ndarray import NDArray
from ..optimizer import Optimizer

__all__ = ["arrays_from", "get_fields", "set_fields", "tensors_of"]

PLAIN = (bool, int, float, str, type(None))


def tensors_of(tree: Any) -> Any:
    """Return a tree with tensors in place of arrays."""
    if isinstance(tree, NDArray):
        return plain(tree)
    if isinstance(tree, Mapping):
        return {key: tensors_of(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(tensors_of(value) for value in tree)
    return tree


def arrays_from(tree: Any) -> Any:
    """Return a tree with arrays in place of tensors."""
    if isinstance(tree, torch.Tensor):
        return wrap_plain(NDArray, tree)
    if isinstance(tree, dict):
        return {key: arrays_from(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(arrays_from(value) for value in tree)
    return tree


def get_fields(thing: Any) -> dict[str, Any]:
    """Return the attributes of an object that are numbers, text, arrays, or containers of them.

    A scheduler inside an optimizer and the parts of a composite metric are included; anything else,
    such as functions, is left to the program.
    """
    settle = getattr(thing, "_settle", None)
    if callable(settle):
        settle()
    found = {}
    for name, value in vars(thing).items():
        kept, part = _fields_in(value)
        if kept:
            found[name] = part
    return found


def _fields_in(value: Any) -> tuple[bool, Any]:
    if isinstance(value, (*PLAIN, np.generic, np.ndarray)):
        return not (isinstance(value, np.ndarray) and value.dtype.hasobject), value
    if isinstance(value, NDArray):
        return True, {"array": plain(value)}
    if isinstance(value, list | tuple):
        parts = [_fields_in(v) for v in value]
        return all(kept for kept, _ in parts), {type(value).__name__: [p for _, p in parts]}
    if isinstance(value, dict):
        parts = {k: _fields_in(v) for k, v in value.items() if isinstance(k, PLAIN)}
        whole = len(parts) == len(value) and all(kept for kept, _ in parts.values())
        return whole, {"dict": {k: p for k, (_, p) in parts.items()}}
    if isinstance(value, EvalMetric | LRScheduler | Optimizer):
        return True, {"object": get_fields(value)}
    return False, None


def set_fields(thing: Any, saved: Mapping[str, Any]) -> None:
    """Set attributes to what `get_fields` returned for an object made in the same way."""
    settle = getattr(thing, "_settle", None)
    if callable(settle):
        settle()
    for name, value in saved.items():
        own = inspect.getattr_static(type(thing), name, None)
        if not isinstance(name, str) or callable(own) or isinstance(own, property):
            raise FormatError(f"A checkpoint may not replace {type(thing).__name__}.{name!s:.80}.")
        vars(thing)[name] = _restored(vars(thing).get(name), value)


def _restored(old: Any, saved: Any) -> Any:
    if not isinstance(saved, Mapping):  # sums stay float64: NumPy would add to a float in float32
        return type(old)(saved) if isinstance(old, np.floating) else saved
    ((kind, content),) = saved.items()
    if kind == "array":
        made = wrap_plain(NDArray, content)
        return made.as_in_context(old.context) if isinstance(old, NDArray) else made
    if kind == "object":
        if old is not None:
            set_fields(old, content)
        return old
    if kind == "dict":
        olds = old if isinstance(old, dict) else {}
        return {k: _restored(olds.get(k), v) for k, v in content.items()}
    olds = (
        old if isinstance(old, list | tuple) and len(old) == len(content) else [None] * len(content)
    )
    parts = [_restored(o, v) for o, v in zip(olds, content, strict=True)]
    return tuple(parts) if kind == "tuple" else parts
