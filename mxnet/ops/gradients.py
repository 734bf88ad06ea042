"""Gradient rules that differ from the derivative, as torch autograd functions.

An output layer defines its gradient whatever the gradient of its output, even behind operators
without a gradient: backward from ``argmax(SoftmaxOutput(x))`` reaches ``x``. Torch's graph ends at
such operators, so `keep_path` attaches their results to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .declare import Op

Each = TypeVar("Each")


class OutputLayers:
    """Registry of output layers in torch's graphs."""

    recorded: bool = False  # whether any thread has recorded one

    @classmethod
    def note(cls, ctx: Any) -> None:
        """Mark a node of torch's graph as an output layer."""
        ctx.makes_own_gradient = cls.recorded = True


class _Ruled(torch.autograd.Function):
    """Runs an operator's forward, and its declared rule in backward."""

    @staticmethod
    def forward(ctx: Any, op: Op, attrs: dict, *inputs: Tensor | None) -> Any:
        out = op.function(*inputs, **attrs)
        outs = out if isinstance(out, tuple) else (out,)
        ctx.op, ctx.attrs, ctx.single = op, attrs, not isinstance(out, tuple)
        ctx.is_present = [t is not None for t in inputs]
        ctx.set_materialize_grads(True)
        if op.facts.loss:
            OutputLayers.note(ctx)
        ctx.save_for_backward(*(t for t in inputs if t is not None), *outs)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        saved = list(ctx.saved_tensors)
        inputs = [saved.pop(0) if present else None for present in ctx.is_present]
        op: Op = ctx.op
        attrs, rule = op.complete(ctx.attrs), ctx.op.gradient_rule
        if ctx.single:
            result = rule(grads[0], saved[0], *inputs, **attrs)
        else:
            result = rule(grads, tuple(saved), *inputs, **attrs)
        result = result if isinstance(result, tuple) else (result,)
        padding = (None,) * (len(inputs) - len(result))
        return (None, None, *result, *padding)


def with_gradient_rule(op: Op) -> Callable:
    """Return the operator's function, with its gradient rule if a gradient is required."""
    function = op.function
    apply = _Ruled.apply

    def kernel(*tensors: Tensor | None, **attrs: Any) -> Any:
        if torch.is_grad_enabled():
            for t in tensors:
                if t is not None and t.requires_grad:
                    return apply(op, attrs, *tensors)
        return function(*tensors, **attrs)

    return kernel


class _ZeroGradient(torch.autograd.Function):
    """Passes zero gradients to the inputs of an operator without a gradient."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, *sources: Tensor) -> Tensor:
        ctx.sources = [(s.shape, s.new_zeros(())) for s in sources]
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:  # type: ignore[override]
        return None, *(zero.expand(shape) for shape, zero in ctx.sources)


def keep_path(result: Tensor, sources: Sequence[Tensor]) -> Tensor:
    """Attach a result without a gradient to the graph of its sources."""
    return _ZeroGradient.apply(result, *sources)


def comes_from_output_layer(tensor: Tensor) -> bool:
    """Return whether a recorded tensor depends on an output layer."""
    nodes = [] if tensor.grad_fn is None else walk([tensor.grad_fn], nodes_below)
    return any(getattr(node, "makes_own_gradient", False) for node in nodes)


def nodes_below(node: Any) -> Iterator[Any]:
    """Yield the nodes of torch's graph that a node passes gradients to."""
    return (below for below, _ in node.next_functions if below is not None)


def walk(starts: Iterable[Each], below: Callable[[Each], Iterable[Each]]) -> Iterator[Each]:
    """Yield the starts and everything below them once, iteratively.

    >>> list(walk([6], lambda n: [n // 2] if n > 1 else []))
    [6, 3, 1]
    """
    seen = dict.fromkeys(starts)
    waiting = list(seen)
    for each in waiting:
        yield each
        for child in below(each):
            if child not in seen:
                seen[child] = None
                waiting.append(child)
