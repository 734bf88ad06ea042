"""Where MXNet's gradient is not the derivative: an operator's rule as a torch autograd function.

An output layer makes its gradient whatever the gradient of its output is, also behind operators
that pass none on: backward from ``argmax(SoftmaxOutput(x))`` reaches ``x``. Torch ends its graph at
such operators, so `keep_path` puts their results back into it.
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
    """What is known of output layers in torch's graphs."""

    recorded: bool = False  # whether any has been recorded, in any thread

    @classmethod
    def note(cls, ctx: Any) -> None:
        """Mark a node of torch's graph as an output layer."""
        ctx.makes_own_gradient = cls.recorded = True


class _Ruled(torch.autograd.Function):
    """Runs an operator forward as it is, and backward by its declared rule."""

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
    """Return the operator's function, differentiated by its rule when a gradient is wanted."""
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
    """Passes zeros back to what a result without a gradient was made of."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, *sources: Tensor) -> Tensor:
        ctx.sources = [(s.shape, s.new_zeros(())) for s in sources]
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple:  # type: ignore[override]
        return None, *(zero.expand(shape) for shape, zero in ctx.sources)


def keep_path(result: Tensor, sources: Sequence[Tensor]) -> Tensor:
    """Return a result that has no gradient as a member of the graph of its sources."""
    return _ZeroGradient.apply(result, *sources)


def comes_from_output_layer(tensor: Tensor) -> bool:
    """Return whether an output layer is among the operators that made a recorded tensor."""
    nodes = [] if tensor.grad_fn is None else walk([tensor.grad_fn], nodes_below)
    return any(getattr(node, "makes_own_gradient", False) for node in nodes)


def nodes_below(node: Any) -> Iterator[Any]:
    """Yield the nodes of torch's graph that a node passes gradients to."""
    return (below for below, _ in node.next_functions if below is not None)


def walk(starts: Iterable[Each], below: Callable[[Each], Iterable[Each]]) -> Iterator[Each]:
    """Yield the starts and everything below them, each once; a loop, not a recursion.

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
