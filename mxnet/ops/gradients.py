"""Where MXNet's gradient is not the derivative: an operator's rule as a torch autograd function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .declare import Op


class _Ruled(torch.autograd.Function):
    """Runs an operator forward as it is, and backward by its declared rule."""

    @staticmethod
    def forward(ctx: Any, op: Op, attrs: dict, *inputs: Tensor | None) -> Any:
        out = op.function(*inputs, **attrs)
        outs = out if isinstance(out, tuple) else (out,)
        ctx.op, ctx.attrs, ctx.single = op, attrs, not isinstance(out, tuple)
        ctx.given = [t is not None for t in inputs]
        ctx.set_materialize_grads(True)
        ctx.save_for_backward(*(t for t in inputs if t is not None), *outs)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        saved = list(ctx.saved_tensors)
        inputs = [saved.pop(0) if given else None for given in ctx.given]
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
