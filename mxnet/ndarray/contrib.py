"""Contributed operators: `mx.nd.contrib`. Most functions are put here by `face`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ..context import Context, current_context, torch_device
from ..error import InvalidType, MXNetError
from ..imperative.apply import apply, stored_context
from ..imperative.handle import plain, wrap_plain
from ..ops import registry
from .contrib_updates import (
    adamw_update,
    mp_adamw_update,
    multi_adamw_update,
    multi_lamb_update,
    multi_mp_adamw_update,
    multi_mp_lamb_update,
)
from .ndarray import NDArray

__all__ = [
    "adamw_update",
    "cond",
    "foreach",
    "isfinite",
    "isinf",
    "isnan",
    "mp_adamw_update",
    "multi_adamw_update",
    "multi_lamb_update",
    "multi_mp_adamw_update",
    "multi_mp_lamb_update",
    "rand_zipfian",
    "while_loop",
]


def _listed(value: Any) -> list[NDArray]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _like(shape: Any, parts: list) -> Any:
    """Return a single array where the user wrote one, else the list."""
    return parts if isinstance(shape, list | tuple) else parts[0]


def _flat(value: Any) -> list[NDArray]:
    """Return the arrays of nested lists in order."""
    if isinstance(value, list | tuple):
        return [array for part in value for array in _flat(part)]
    if not isinstance(value, NDArray):
        raise InvalidType(
            "A loop's output must be an NDArray or (nested) lists of them, but got "
            f"{value!r} of {type(value).__name__}."
        )
    return [value]


def _nested_like(shape: Any, parts: Iterator[NDArray]) -> Any:
    """Return the parts in lists nested as the user's were."""
    if isinstance(shape, list | tuple):
        return [_nested_like(inner, parts) for inner in shape]
    return next(parts)


def _stack(columns: Sequence[Sequence[NDArray]]) -> list[NDArray]:
    stack = registry.get("stack")
    return [apply(stack, list(c), {"axis": 0}, cls=type(c[0])) for c in columns]


def foreach(body: Callable, data: Any, init_states: Any) -> tuple[Any, Any]:
    """Run ``body(slice, states) -> (outputs, states)`` over axis 0 of the data.

    >>> step = lambda x, s: (x + s, x + s)
    >>> out, last = mx.nd.contrib.foreach(step, mx.nd.array([[1], [2]]), mx.nd.zeros((1,)))
    >>> out.asnumpy().ravel()
    array([1., 3.], dtype=float32)
    """
    arrays = _listed(data)
    if not arrays:
        raise MXNetError("foreach needs at least one array to go over.")
    states, steps, outs = init_states, [], []
    for t in range(arrays[0].shape[0]):
        outs, states = body(_like(data, [a[t] for a in arrays]), states)
        steps.append(_flat(outs))
    stacked = _stack(list(zip(*steps, strict=True)))
    return _nested_like(outs, iter(stacked)), states


def while_loop(
    cond: Callable, func: Callable, loop_vars: Any, max_iterations: int | None = None
) -> tuple[Any, Any]:
    """Run ``func(*loop_vars) -> (outputs, loop_vars)`` while ``cond(*loop_vars)`` holds.

    Outputs are stacked along a new axis 0 and padded with zeros to `max_iterations`.

    >>> out, last = mx.nd.contrib.while_loop(
    ...     lambda i: i < 2, lambda i: (i * 10, [i + 1]), [mx.nd.zeros((1,))], max_iterations=3)
    >>> out.asnumpy().ravel(), last[0].asscalar()
    (array([ 0., 10.,  0.], dtype=float32), np.float32(2.0))
    """
    if max_iterations is None:
        raise ValueError("max_iterations should be specified")
    if not _listed(loop_vars):
        raise ValueError("while_loop: loop_vars should contain at least one element")
    max_iterations = int(max_iterations)
    steps, outs = [], []
    variables = loop_vars
    while len(steps) < max_iterations and bool(cond(*_listed(variables))):
        outs, variables = func(*_listed(variables))
        if len(_listed(variables)) != len(_listed(loop_vars)):
            raise ValueError(
                f"while_loop: func returned {len(_listed(variables))} loop_vars, "
                f"but got {len(_listed(loop_vars))}."
            )
        outs = [] if outs is None else outs
        steps.append(_flat(outs))
        if len(steps[-1]) != len(steps[0]):
            raise ValueError(
                f"while_loop: func returned {len(steps[-1])} outputs, but {len(steps[0])} in the "
                "first step."
            )
        if isinstance(loop_vars, list | tuple):
            variables = _listed(variables)
    if not steps:
        return [], variables
    missing = max_iterations - len(steps)
    zeros = registry.get("zeros_like")
    padding = [[apply(zeros, (o,), None, cls=type(o)) for o in steps[0]]] * missing
    stacked = _stack(list(zip(*steps, *padding, strict=True)))
    return _nested_like(outs, iter(stacked)), variables


def cond(pred: NDArray, then_func: Callable, else_func: Callable) -> Any:
    """Return what `then_func` gives where `pred` is true, else what `else_func` gives.

    >>> yes, no = lambda: mx.nd.ones(1), lambda: mx.nd.zeros(1)
    >>> mx.nd.contrib.cond(mx.nd.array([1]), yes, no).asscalar()
    np.float32(1.0)
    """
    return then_func() if bool(pred) else else_func()


def _numbers(test: Callable[[torch.Tensor], torch.Tensor], data: NDArray) -> NDArray:
    tensor = plain(data)
    return wrap_plain(type(data), test(tensor).to(tensor.dtype), data._ctx)


def isnan(data: NDArray) -> NDArray:
    """Return 1 where an element is not a number.

    >>> mx.nd.contrib.isnan(mx.nd.array([np.nan, 1])).asnumpy()
    array([1., 0.], dtype=float32)
    """
    return _numbers(torch.isnan, data)


def isinf(data: NDArray) -> NDArray:
    """Return 1 where an element is infinite."""
    return _numbers(torch.isinf, data)


def isfinite(data: NDArray) -> NDArray:
    """Return 1 where an element is a finite number."""
    return _numbers(torch.isfinite, data)


def rand_zipfian(
    true_classes: NDArray, num_sampled: int, range_max: int, ctx: Context | None = None
) -> tuple[NDArray, NDArray, NDArray]:
    """Draw classes from a Zipfian distribution over [0, range_max).

    Returns the samples, and how often the true and the sampled classes are expected among them.
    """
    ctx = ctx or current_context()
    device, log_range = torch_device(ctx), math.log(range_max + 1)
    draws = torch.rand(num_sampled, dtype=torch.float64, device=device)
    sampled = (torch.exp(draws * log_range) - 1).to(torch.int64) % range_max

    def expected(classes: torch.Tensor) -> torch.Tensor:
        classes = classes.to(device=device, dtype=torch.float64)
        return torch.log((classes + 2) / (classes + 1)) / log_range * num_sampled

    found = (sampled, expected(plain(true_classes)), expected(sampled))
    return tuple(wrap_plain(NDArray, t, stored_context(ctx)) for t in found)
