"""Gradients of integer arrays, which torch does not support.

In a recorded graph, a float64 tensor without storage represents an integer array. Torch propagates
gradients through this tensor, while operators read the integers. The gradient of an operator is
the gradient of its kernel at the same values in float64, truncated to integers as in MXNet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..ops.declare import KERNEL_ERRORS, Op
from ..ops.facts import Facts
from ..ops.interpreters import run_kernel
from .array import ArrayT, current, plain, set_member, wrap, wrap_plain
from .backward import backward
from .recording import graph_tensor, is_constant_now, is_stand_in, state

if TYPE_CHECKING:
    from ..context import Context
    from ..ndarray.ndarray import NDArray


def leaf_tensor(data: Tensor) -> Tensor:
    """Return the tensor that represents an integer leaf in torch's graph."""
    return _without_memory(data).requires_grad_()


def _without_memory(like: Tensor) -> Tensor:
    return torch.zeros((), dtype=torch.float64, device=like.device).expand(like.shape)


def truncate(gradient: Tensor, dtype: torch.dtype) -> Tensor:
    """Convert a gradient to integers: truncate fractions, and wrap values out of range.

    >>> truncate(torch.tensor([-1.7, 300.2]), torch.uint8)
    tensor([255,  44], dtype=torch.uint8)
    """
    return gradient.to(torch.int64).to(dtype)


def casts_to_integer(op: Op, tensors: Sequence[Tensor | None], attrs: Mapping[str, Any]) -> bool:
    """Return whether a call casts a tensor that requires a gradient to an integer type."""
    if not op.facts.makes_integers(attrs):
        return False
    first = tensors[0]
    return first is not None and first.requires_grad


def run_on_integers(
    op: Op,
    inputs: Sequence[NDArray | None],
    attrs: Mapping[str, Any],
    cls: type[NDArray],
    ctx: Context | None,
) -> Any:
    """Run an operator on arrays, if some inputs or results are integers in a graph."""
    values = [None if a is None else plain(a) for a in inputs]
    members = [_member_now(a) for a in inputs]
    with torch.no_grad():
        result = run_kernel(op, values, attrs)
    single = type(result) is Tensor
    arrays = [wrap_plain(cls, t, ctx) for t in ((result,) if single else result)]
    if not op.facts.random and any(m is not None for m in members):
        call = _IntegerCall(op.kernel, values, attrs, op.facts)
        _record_integers(call, members, arrays)
    return arrays[0] if single else arrays


def derive(array: ArrayT, function: Callable[[Tensor], Tensor]) -> ArrayT:
    """Apply a torch function that returns a view or a copy to an array, in the array's graph."""
    if not (state.recording and is_stand_in(array)):
        return wrap(type(array), function(current(array)), array._ctx)
    value, member = plain(array), _member_now(array)
    output = wrap_plain(type(array), function(value), array._ctx)
    if member is not None:
        _record_integers(_IntegerCall(function, [value], {}, Facts()), [member], [output])
    return output


def _record_integers(
    call: _IntegerCall, members: list[Tensor | None], arrays: list[NDArray]
) -> None:
    """Add arrays to the graph as results of a call."""
    results = [plain(a) for a in arrays]
    tracked_results = _IntegerStep.apply(call, results, *members)
    for array, tracked in zip(arrays, tracked_results, strict=True):
        set_member(array, tracked, state.session)
        if not is_stand_in(array):
            array._data = None


def _member_now(array: NDArray | None) -> Tensor | None:
    """Return the tensor that represents an array in the current session's graph, or None."""
    if array is None or graph_tensor(array) is None:
        return None
    return None if is_constant_now(array, state.session) else graph_tensor(array)


class _IntegerCall:
    """A kernel and its input values, saved for backward."""

    def __init__(
        self, kernel: Callable, values: Sequence[Tensor | None], attrs: Mapping, facts: Facts
    ) -> None:
        self.kernel, self.values, self.attrs, self.facts = kernel, values, attrs, facts

    def gradients(self, needed: Sequence[bool], grads: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the gradients of the requested inputs, or None for inputs without a gradient."""
        if self.facts.straight_through:
            return [_as_gradient(grads[0], value) for value in self.values]
        if self.facts.zero_for_integers:
            return self._zero_integers(needed, grads)
        return self._differentiate(needed, grads)

    def _zero_integers(self, needed: Sequence[bool], grads: Sequence[Tensor]) -> list:
        """Return the gradients of floating-point inputs, and zeros for integers."""
        integers = [v is not None and not v.dtype.is_floating_point for v in self.values]
        others = [w and not i for w, i in zip(needed, integers, strict=True)]
        gradients = self._differentiate(others, grads) if any(others) else [None] * len(others)
        return [
            torch.zeros(value.shape, dtype=torch.float64, device=value.device)
            if value is not None and is_integer
            else gradient
            for gradient, value, is_integer in zip(gradients, self.values, integers, strict=True)
        ]

    def _differentiate(self, needed: Sequence[bool], grads: Sequence[Tensor]) -> list:
        inputs, outputs = self._rerun(needed)
        pairs = [(o, g) for o, g in zip(outputs, grads, strict=False) if o.requires_grad]
        if not pairs:
            return [None] * len(self.values)
        heads, head_grads = [o for o, _ in pairs], [g.to(o.dtype) for o, g in pairs]
        chosen = {n: x for n, x in enumerate(inputs) if x is not None and x.requires_grad}
        gradients = backward(heads, head_grads, list(chosen.values()))
        by_index = dict(zip(chosen, gradients, strict=True))
        return [_as_gradient(by_index.get(n), value) for n, value in enumerate(self.values)]

    def _rerun(self, needed: Sequence[bool]) -> tuple[Sequence[Tensor | None], Sequence[Tensor]]:
        """Rerun the kernel on differentiable inputs. Return these inputs and the outputs.

        Some inputs have to be integers, such as lengths and indices: then only the other inputs
        have gradients. Both lists are empty if the kernel supports neither.
        """
        for converts, attrs in ((True, _differentiable_attrs(self.attrs)), (False, self.attrs)):
            inputs = [
                _differentiable(v, w, converts) for v, w in zip(self.values, needed, strict=True)
            ]
            try:
                with torch.enable_grad():
                    outputs = self.kernel(*inputs, **attrs)
            except KERNEL_ERRORS:
                continue
            return inputs, [outputs] if type(outputs) is Tensor else outputs
        return [], []


def _differentiable(value: Tensor | None, requires_grad: bool, converts: bool) -> Tensor | None:
    """Return an input that may require a gradient; integers become float64 if `converts`."""
    if value is None:
        return None
    if value.dtype.is_floating_point:
        data = value.detach()
    elif converts:
        data = value.double()
    else:
        return value
    return data.requires_grad_() if requires_grad else data


def _differentiable_attrs(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes with float64 in place of integer dtypes."""
    return {
        name: torch.float64
        if isinstance(value, torch.dtype) and not value.is_floating_point
        else value
        for name, value in attrs.items()
    }


def _as_gradient(gradient: Tensor | None, value: Tensor | None) -> Tensor | None:
    if gradient is None or value is None:
        return None
    if value.dtype.is_floating_point:
        return gradient.to(value.dtype)
    return truncate(gradient, value.dtype).double()


class _IntegerStep(torch.autograd.Function):
    """An operator of a graph with integer inputs or outputs."""

    @staticmethod
    def forward(
        ctx: Any, call: _IntegerCall, results: list[Tensor], *members: Tensor | None
    ) -> Any:
        ctx.call = call
        return tuple(r if r.dtype.is_floating_point else _without_memory(r) for r in results)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride] (called by position)
        ctx: Any, *grads: Tensor
    ) -> tuple:
        needed = ctx.needs_input_grad[2:]
        return None, None, *ctx.call.gradients(needed, grads)
