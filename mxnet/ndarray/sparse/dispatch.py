"""Dispatch of `apply` for sparse inputs: a sparse kernel, or the dense one with a warning.

A kernel takes a `Call` and returns an array, or None for unsupported storage types. Unless a kernel
records itself, its gradient is that of the dense operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

import torch
from torch import Tensor

from ... import dtypes
from ...error import DTypeError, MXNetError, ShapeError
from ...ops.declare import KERNEL_ERRORS, Op, OpContext
from ...ops.interpreters import run_kernel
from ...ops.kernel_errors import operator_error
from ...runtime.apply import assign
from ...runtime.array import current, plain, wrap
from ...runtime.recording import graph_tensor, is_constant_now, is_stand_in, state
from ..ndarray import NDArray
from .arrays import (
    BaseSparseNDArray,
    CSRNDArray,
    RowSparseNDArray,
    from_dense,
    make,
    warn_of_operator,
)

CLASSES: dict[str, type[BaseSparseNDArray]] = {"csr": CSRNDArray, "row_sparse": RowSparseNDArray}


Array = TypeVar("Array", bound=NDArray)
Kernel = TypeVar("Kernel", bound="Callable[[Call], NDArray | None]")


class Call(NamedTuple):
    """An operator call with sparse inputs."""

    op: Op
    inputs: Sequence[NDArray | None]
    attrs: dict[str, Any]  # complete
    stypes: tuple[str, ...]
    out: NDArray | Sequence[NDArray] | None

    @property
    def arrays(self) -> list[NDArray]:
        """The inputs of an operator without optional inputs."""
        return [a for a in self.inputs if a is not None]

    @property
    def array(self) -> BaseSparseNDArray:
        """The sparse input of an operator with one input."""
        (array,) = self.inputs
        assert isinstance(array, BaseSparseNDArray)
        return array

    def all_of(self, cls: type[Array]) -> list[Array] | None:
        """Return the inputs if all are instances of a class."""
        arrays = [a for a in self.inputs if isinstance(a, cls)]
        return arrays if len(arrays) == len(self.inputs) else None


_kernels: dict[Op, tuple[Callable[[Call], NDArray | None], bool]] = {}


def kernel(*operators: Op, records: bool = False) -> Callable[[Kernel], Kernel]:
    """Register the sparse kernel of operators; with `records` it builds its own graph."""

    def declare(function: Kernel) -> Kernel:
        for op in operators:
            _kernels[op] = (function, records)
        return function

    return declare


class _Filled(torch.autograd.Function):
    """Dense form of a sparse leaf; the gradient is passed to the leaf unchanged."""

    @staticmethod
    def forward(ctx: Any, ghost: Tensor, dense: Tensor) -> Tensor:
        return dense.view_as(dense)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple:
        return *grads, None


def in_graph(array: NDArray | None) -> bool:
    """Return whether the array is part of a recorded computation."""
    return array is not None and graph_tensor(array) is not None


@overload
def dense_now(array: NDArray) -> Tensor: ...


@overload
def dense_now(array: NDArray | None) -> Tensor | None: ...


def dense_now(array: NDArray | None) -> Tensor | None:
    """Return the dense form as an operator's input, attached to the graph while recording."""
    if array is None:
        return None
    if not isinstance(array, BaseSparseNDArray):
        # Integers beside sparse arrays are indices: without gradients.
        return plain(array) if is_stand_in(array) else current(array)
    ghost = ghost_now(array)
    if ghost is None:
        return array._dense()
    return _Filled.apply(ghost, array._dense()) if ghost.is_leaf else ghost


def ghost_now(array: BaseSparseNDArray) -> Tensor | None:
    """Return the tensor of a sparse array in the current recording, or None."""
    session = state.session
    if session is None or is_constant_now(array, session):
        return None
    return array._ghost


def run(
    op: Op,
    inputs: Sequence[NDArray | None],
    attrs: Mapping[str, Any],
    out: Any,
    cls: type[NDArray],
) -> Any:
    """Run an operator with a sparse input; like `apply`, with parsed attributes."""
    cls = NDArray if issubclass(cls, BaseSparseNDArray) else cls
    stypes = tuple("none" if a is None else a.stype for a in inputs)
    single = out[0] if isinstance(out, list | tuple) and len(out) == 1 else out
    call = Call(op, inputs, op.complete(attrs), stypes, single)
    function, records = _kernels.get(op, (None, False))
    recording = state.recording and any(map(in_graph, inputs))
    output = None
    if function is not None:
        try:
            output = function(call)
        except MXNetError:
            raise
        except KERNEL_ERRORS as error:
            tensors = [None if a is None else dense_of(a) for a in inputs]
            raise operator_error(op.name, tensors, error) from error
    if output is None:
        output = _dense_result(call, attrs, cls)
    elif recording and not records:
        output = _with_graph(call, attrs, output, cls)
    if out is None or output is single:
        return output if out is None else out
    return _write(op.name, out, output)


def _run_dense(call: Call) -> tuple[Any, list[Tensor | None]]:
    """Return the dense operator's result and its input tensors."""
    op, tensors = call.op, [dense_now(a) for a in call.inputs]
    for i in _changed_attrs(call):  # a fully stored array shares its memory: change a copy
        tensor = tensors[i]
        if tensor is not None and call.stypes[i] != "default":
            tensors[i] = tensor.clone()
    attrs = dict(call.attrs)
    if op.context_parameter is not None:
        device = next(t.device for t in tensors if t is not None)
        attrs[op.context_parameter] = OpContext(state.training, device)
    try:
        return run_kernel(op, tensors, attrs), tensors
    except MXNetError:
        raise
    except KERNEL_ERRORS as error:
        raise operator_error(op.name, tensors, error) from error


def _changed_attrs(call: Call) -> list[int]:
    op = call.op
    return [i for i, p in enumerate(op.inputs) if p.aux or p.name in op.mutates]


def _stypes_of(out: Any, count: int) -> list[str]:
    if out is None:
        return ["default"] * count
    return [a.stype for a in (out if isinstance(out, list | tuple) else [out])]


def _dense_result(call: Call, attrs: Mapping[str, Any], cls: type[NDArray]) -> Any:
    """Fall back to the dense operator; in-place changes are copied back to sparse inputs."""
    result, tensors = _run_dense(call)
    single = isinstance(result, Tensor)
    stypes = _stypes_of(call.out, 1 if single else len(result))
    warn_of_operator(call.op.name, [s for s in call.stypes if s != "none"], stypes, attrs)
    for i in _changed_attrs(call):
        target, tensor = call.inputs[i], tensors[i]
        if isinstance(target, BaseSparseNDArray) and tensor is not None:
            target._take_dense(tensor)
    ctx = next((a._ctx for a in call.inputs if a is not None), None)
    return wrap(cls, result, ctx) if single else [wrap(cls, t, ctx) for t in result]


def _with_graph(
    call: Call, attrs: Mapping[str, Any], output: NDArray, cls: type[NDArray]
) -> NDArray:
    """Attach a result to the graph, through the dense operator."""
    result, _ = _run_dense(call)
    if not isinstance(result, Tensor) or not result.requires_grad:
        return output
    stypes = [s for s in call.stypes if s != "none"]
    if not isinstance(output, BaseSparseNDArray):
        return wrap(cls, result, output._ctx)
    warn_of_operator(f"_backward_{call.op.name}", ["default", *stypes], stypes, attrs)
    output._ghost = result
    return output


def _write(name: str, out: Any, output: Any) -> Any:
    """Write results into the user's `out` arrays, of any storage type."""
    targets = list(out) if isinstance(out, list | tuple) else [out]
    results = output if isinstance(output, list) else [output]
    for target, result in zip(targets, results, strict=False):
        write_one(name, target, result)
    return out


def write_one(name: str, target: NDArray, result: NDArray) -> None:
    """Write one result into the user's `out` array."""
    _check_target(name, target, result.shape, result.dtype)
    if isinstance(target, BaseSparseNDArray):
        if isinstance(result, BaseSparseNDArray) and type(target) is type(result):
            target._set(result._shape, *result._parts())
            target._ghost = result._ghost
        else:
            assign_dense(name, target, dense_of(result))
    elif isinstance(result, BaseSparseNDArray):
        warn_of_operator(name, [result.stype], ["default"], {})
        assign(name, target, dense_of(result))
    else:
        assign(name, target, current(result))


def _check_target(name: str, target: NDArray, shape: tuple[int, ...], dtype: Any) -> None:
    if target.shape != shape:
        raise ShapeError(
            f"Shape inconsistent, Provided = {list(target.shape)}, inferred shape="
            f"{list(shape)}, in operator {name} with out=."
        )
    if target.dtype != dtype:
        raise DTypeError(
            f"Incompatible attr in node {name} at 0-th output: expected "
            f"{dtypes.to_name(dtype)}, got {dtypes.to_name(target.dtype)}."
        )


def assign_dense(name: str, target: BaseSparseNDArray, tensor: Tensor) -> None:
    """Write a dense operator's result into a sparse array, with a warning."""
    _check_target(name, target, tuple(tensor.shape), dtypes.to_numpy(tensor.dtype))
    warn_of_operator(name, ["default"], [target.stype], {})
    target._take_dense(tensor)


def sparse_gradient(variable: NDArray, gradient: Tensor) -> NDArray:
    """Return a sparse gradient, or the gradient of a sparse array, as an array."""
    if gradient.layout is torch.strided:
        return wrap(NDArray, gradient, variable._ctx)
    gradient = gradient.coalesce()
    rows, values = gradient.indices()[0], gradient.values()
    return make(RowSparseNDArray, variable.shape, values, rows, ctx=variable._ctx)


def dense_of(array: NDArray) -> Tensor:
    """Return an array's dense form outside any graph."""
    return array._dense() if isinstance(array, BaseSparseNDArray) else plain(array)


def to_storage(tensor: Tensor, stype: str, ctx: Any = None) -> NDArray:
    """Convert a dense tensor to an array of a storage type."""
    if stype == "default":
        return wrap(NDArray, tensor, ctx)
    output = from_dense(CLASSES[stype], tensor.detach(), ctx)
    if tensor.requires_grad:
        output._ghost = tensor
    return output
