"""Arrays for other input shapes: what keeps its shape is shared, what shrinks keeps its memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..error import MXNetError, ShapeError
from ..graph.passes.infer import infer_shapes, unknown_for_zero
from ..imperative.handle import plain, wrap_plain
from ..ndarray import NDArray
from ..ndarray.sparse import zeros
from ..ops.shapes import is_known

if TYPE_CHECKING:
    from .executor import Executor

Arrays = list[NDArray]


def reshaped(
    executor: Executor,
    given: Mapping[str, Sequence[int]],
    partial_shaping: bool,
    allow_up_sizing: bool,
) -> tuple[Arrays, list[NDArray | None], Arrays]:
    """Return arguments, gradients and auxiliary states of these shapes for an executor's graph."""
    graph = executor._graph
    found = infer_shapes(graph, {n: unknown_for_zero(tuple(s)) for n, s in given.items()})
    names = [n.name for n in graph.arguments]
    missing = [n for n, s in zip(names, found.arguments, strict=True) if not is_known(s)]
    if missing:
        raise ShapeError(
            f"reshape: the shapes of {', '.join(given) or 'no arguments'} are not enough to infer "
            f"those of {', '.join(missing)}. Give them too."
        )
    args, grads = [], []
    for name, shape, old, grad in zip(
        names, found.arguments, executor.arg_arrays, executor.grad_arrays, strict=True
    ):
        if old.shape == shape:
            args.append(old)
            grads.append(grad)
            continue
        if not partial_shaping and name not in given:
            raise _unexpected_change(name, old.shape, shape)
        if not allow_up_sizing and math.prod(shape) > old.size:
            raise _larger(name)
        args.append(_fresh_like(old, shape))
        grads.append(None if grad is None else _fresh_like(grad, shape))
    aux = [
        old if old.shape == shape else _fresh_like(old, shape)
        for old, shape in zip(executor.aux_arrays, found.auxiliary, strict=True)
    ]
    return args, grads, aux


def _unexpected_change(name: str, old: tuple[int, ...], new: tuple[int, ...]) -> MXNetError:
    return MXNetError(
        f"Shape of unspecified arg: {name} changed from {old} to {new}. This can cause the new "
        "executor to not share parameters with the old one. Please check for error in the "
        "network. If this is intended, set partial_shaping=True to suppress this warning."
    )


def _larger(name: str) -> MXNetError:
    return MXNetError(
        f"New shape of arg: {name} is larger than original. First making a big executor and then "
        "down sizing it is more efficient than the reverse. If you really want to up size, set "
        "allow_up_sizing=True to enable allocation of new arrays."
    )


def _fresh_like(old: NDArray, shape: tuple[int, ...]) -> NDArray:
    if old.stype != "default":
        return zeros(old.stype, shape, ctx=old.context, dtype=old.dtype)
    tensor, size = plain(old), math.prod(shape)
    if size <= tensor.numel():  # smaller: a part of the old memory, as MXNet has it
        return wrap_plain(NDArray, tensor.reshape(-1)[:size].reshape(shape), old._ctx)
    return wrap_plain(NDArray, tensor.new_zeros(shape), old._ctx)
