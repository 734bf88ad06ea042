"""`apply`: the single path from an eager call to an operator's kernel.

The generated functions of `call_functions` take a fast path for calls they have seen before. It
is a shortcut through this module, never a second set of rules: whatever it cannot do, and every
error, comes back here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from .. import dtypes
from ..context import Context, current_context, torch_device
from ..error import DTypeError, MXNetError, ShapeError
from ..ops import interpreters
from ..ops.declare import KERNEL_ERRORS, Op, OpContext
from ..ops.interpreters import run_kernel
from ..ops.kernel_errors import describe_kernel_error, operator_error
from .array import (
    is_same_memory,
    is_sparse,
    operand_in,
    plain,
    set_member,
    wrap,
    writable,
    written_in,
)
from .integers import casts_to_integer, run_on_integers
from .recording import call_step, is_stand_in, record_step, state

if TYPE_CHECKING:
    from ..ndarray.ndarray import NDArray
    from ..ndarray.sparse.arrays import BaseSparseNDArray

__all__ = [
    "apply",
    "assign",
    "bind_inputs",
    "parse_context",
    "stored_context",
]

_NO_ATTRS: dict[str, Any] = {}


def apply(
    op: Op,
    inputs: Sequence[NDArray | None],
    raw: Mapping[str, Any] | None,
    out: Any = None,
    *,
    cls: type[NDArray],
    ctx: Context | None = None,
) -> Any:
    """Run an operator on arrays and return the resulting array or list of arrays.

    Parameters
    ----------
    inputs : one for each input of the operator, None where an optional one is absent.
    raw : attributes as passed by the user.
    out : array or list of arrays that receive the result.
    cls : the class of the new arrays.
    ctx : context of the result of operators without inputs; by default the current context.
    """
    cls = result_class(op, inputs, cls)
    if out is not None and not inputs and "shape" in op.attributes:
        raw = {"shape": out.shape, "dtype": out.dtype, **(raw or {})}
    attrs = op.parse(raw or _NO_ATTRS) if raw or op.required else _NO_ATTRS
    if op.variadic is None:
        inputs = bind_inputs(op, inputs, attrs)
    present = [a for a in inputs if a is not None]
    if any(map(is_sparse, present)):
        return _apply_to_sparse(op, inputs, attrs, out, cls)
    through_integers = state.recording and any(map(is_stand_in, present))
    if through_integers:
        tensors = [None if a is None else plain(a) for a in inputs]
    else:
        tensors = _take_tensors(op, inputs)
        through_integers = state.recording and casts_to_integer(op, tensors, attrs)
    result_ctx, given_attrs = _context_of(inputs, ctx, attrs), attrs
    if op.context_parameter is not None:
        device = _device_of(tensors, result_ctx)
        attrs = {**attrs, op.context_parameter: OpContext(state.training, device)}
    try:
        if out is not None and write_directly(op, tensors, attrs, out):
            return out
        if through_integers and out is None:
            outputs = run_on_integers(op, inputs, attrs, cls, stored_context(result_ctx))
            record_step(outputs, call_step(op, given_attrs), inputs)
            return outputs
        result = run_kernel(op, tensors, attrs)
    except MXNetError as error:
        if op.name in str(error) or str(error).startswith("Error in "):
            raise
        raise type(error)(f"Error in operator {op.name}: {error}") from error
    except KERNEL_ERRORS as error:
        described = describe_kernel_error(op, tensors, attrs, error)
        raise operator_error(op.name, tensors, described) from error
    if out is None:
        out = _wrap_results(cls, result, stored_context(result_ctx))
    else:
        _write_out(op, result, out)
    if state.recording:
        record_step(out, call_step(op, given_attrs), inputs)
    return out


def _take_tensors(op: Op, inputs: Sequence[NDArray | None]) -> list[Tensor | None]:
    """Return the tensors that an operator reads and writes."""
    session = state.session
    if session is None or not op.has_written_inputs:
        return [None if a is None else operand_in(session, a) for a in inputs]
    names = [op.variadic] * len(inputs) if op.variadic else [i.name for i in op.inputs]
    return [
        None if a is None else (written_in if op.writes_into(n) else operand_in)(session, a)
        for n, a in zip(names, inputs, strict=True)
    ]


def _wrap_results(cls: type[NDArray], result: Any, ctx: Context | None) -> Any:
    """Wrap the result of a kernel: return one array, or a list for several tensors."""
    if type(result) is Tensor:
        return wrap(cls, result, ctx)
    return [wrap(cls, t, ctx) for t in result]


def _apply_to_sparse(
    op: Op, inputs: Sequence[NDArray | None], attrs: dict[str, Any], out: Any, cls: type[NDArray]
) -> Any:
    from ..ndarray.sparse.dispatch import run  # lazy import: sparse arrays build on this module

    outputs = run(op, inputs, attrs, out, cls)
    if state.recording:
        record_step(outputs, call_step(op, attrs), inputs)
    return outputs


def result_class(op: Op, inputs: Sequence[Any], cls: type[NDArray]) -> type[NDArray]:
    """Return the class of the results. Operators on arrays of `mx.np` return arrays of `mx.np`."""
    result = cls
    for array in inputs:
        if array is None:
            continue
        if array.is_numpy:
            result = type(array)
        elif cls.is_numpy:
            raise TypeError(
                f"Operator {op.name} is a NumPy operator, which accepts arrays of mx.np only, but "
                "got a legacy NDArray. Convert it: x.as_np_ndarray()."
            )
    return result


def bind_inputs(op: Op, inputs: Sequence[Any], attrs: dict) -> Sequence[Any]:
    """Return one entry for each input of the operator. A wrong number raises an error.

    As in MXNet, arrays are assigned in order to the inputs that are used with these attributes.
    """
    present = [a for a in inputs if a is not None]
    if not op.optional:
        if len(present) == len(op.inputs):
            return inputs
        required = [i.name for i in op.inputs if not i.optional]
        if len(present) >= len(required) and len(present) == len(inputs):
            return inputs
    else:
        required = op.wanted_inputs(attrs)
    if len(present) != len(required):
        raise MXNetError(
            f"Operator {op.name} expects {len(required)} inputs, but got {len(present)} instead. "
            f"With these arguments it takes: {', '.join(required)}."
        )
    by_name = dict(zip(required, present, strict=True))
    return [by_name.get(i.name) for i in op.inputs]


def _context_of(inputs: Sequence[Any], ctx: Context | None, attrs: dict) -> Context | None:
    for a in inputs:
        if a is not None:
            return a._ctx
    if ctx is not None:
        return ctx
    named = attrs.get("ctx")
    return parse_context(named) if named else current_context()


def parse_context(text: str) -> Context:
    """Read a context from its printed form.

    >>> parse_context("cpu(1)")
    cpu(1)
    """
    kind, _, number = text.rstrip(")").partition("(")
    try:
        return Context(kind, int(number or 0))
    except (KeyError, ValueError):
        raise MXNetError(f"{text!r} is not a context; give for example 'cpu(0)'.") from None


def _device_of(tensors: Sequence[Tensor | None], ctx: Context | None) -> torch.device:
    for t in tensors:
        if t is not None:
            return t.device
    return torch_device(ctx or current_context())


def stored_context(ctx: Context | None) -> Context | None:
    """Return the context if an array must remember it, None if the tensor's device implies it."""
    if ctx is None or ctx.device_typeid == 2 or (ctx.device_typeid == 1 and ctx.device_id == 0):
        return None
    return ctx


def _write_out(op: Op, result: Any, out: Any) -> None:
    results = [result] if isinstance(result, Tensor) else list(result)
    targets = list(out) if isinstance(out, list | tuple) else [out]
    if len(targets) > len(results):
        raise MXNetError(
            f"Operator {op.name} makes {len(results)} output(s), but out= has {len(targets)}."
        )
    for tensor, target in zip(results, targets, strict=False):
        assign(op.name, target, tensor)


def assign(name: str, target: NDArray, tensor: Tensor) -> None:
    """Write an operator's result into the array that was passed as `out`."""
    if is_sparse(target):
        from ..ndarray.sparse.dispatch import assign_dense

        assign_dense(name, cast("BaseSparseNDArray", target), tensor)
        return
    memory = writable(target)
    if memory.shape != tensor.shape:
        raise ShapeError(
            f"Shape inconsistent, Provided = {list(memory.shape)}, "
            f"inferred shape={list(tensor.shape)}, in operator {name} with out=."
        )
    if memory.dtype is not tensor.dtype:
        raise DTypeError(
            f"Incompatible attr in node {name} at 0-th output: expected "
            f"{dtypes.to_name(tensor.dtype)}, got {dtypes.to_name(memory.dtype)}."
        )
    with torch.no_grad():
        if not is_same_memory(memory, tensor):
            memory.copy_(tensor)
    if tensor.requires_grad:
        set_member(target, tensor, state.session)


MIN_ELEMENTS = 1 << 14  # copying smaller results is cheaper than this check


def write_directly(op: Op, tensors: Sequence[Tensor | None], attrs: dict, out: Any) -> bool:
    """Compute directly into `out`, if the operator supports it. Return False if it does not."""
    if "out" not in op.variants or state.recording or interpreters.eager:
        return False
    if isinstance(out, list | tuple) or out._data is None:
        return False
    memory = writable(out)
    if memory.numel() < MIN_ELEMENTS or not memory.is_floating_point():
        return False
    if not all(t is not None and _may_read(t, memory) for t in tensors):
        return False
    kernel = op.find_variant("out", op.complete(attrs), memory.dtype)
    if kernel is None:
        return False
    kernel(*tensors, out=memory)
    return True


def _may_read(tensor: Tensor, memory: Tensor) -> bool:
    """Return whether an operand has the properties of the result, and equal or disjoint memory."""
    if tensor.shape != memory.shape or tensor.dtype is not memory.dtype:
        return False
    if tensor.device != memory.device or tensor.requires_grad:
        return False
    if tensor.data_ptr() == memory.data_ptr():
        return tensor.stride() == memory.stride()
    return tensor.untyped_storage().data_ptr() != memory.untyped_storage().data_ptr()
