"""Makes `mx.nd.X` and array methods from the operator registry."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..error import InvalidType, MXNetError
from ..ops import registry
from ..ops.declare import Op, operator_error
from ..ops.presentation import as_method, dress, show_all
from .invoke import KERNEL_ERRORS, invoke
from .state import recording_scopes
from .storage import Handle, current, new_object, wrap_recorded

if TYPE_CHECKING:
    from .core import NDArray

FLOATING = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})


def make_function(op: Op, name: str, cls: type[NDArray]) -> Callable:
    """Return the eager function of an operator, with a real signature and docstring."""
    function = _variadic(op, cls) if op.variadic is not None else _fixed(op, cls)
    return dress(function, op, name, "mxnet.ndarray.op", "NDArray")


def _fixed(op: Op, cls: type[NDArray]) -> Callable:
    """Return the function of an operator with a fixed list of inputs.

    Dense arrays by position and attributes that were parsed before take a short way; whatever
    else may come goes the general one.
    """
    general = _general(op, cls)
    if op.raw is not None and len(op.inputs) == 1 and not op.attributes:
        return _unary(op, cls, general)
    if op.optional or op.context_parameter is not None or not op.inputs:
        return general
    return {1: _of_one, 2: _of_two}.get(len(op.inputs), _of_many)(op, cls, general)


def _of_one(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    kernel, recall, needs_attributes = op.kernel, _recall(op), bool(op.required)

    def take_kernel() -> None:
        nonlocal kernel
        kernel = op.kernel

    op.follow(take_kernel)

    def function(*arrays: Any, **given: Any) -> Any:
        attrs = recall(given) if given else None
        if len(arrays) != 1 or ((given or needs_attributes) and attrs is None):
            return general(*arrays, **given)
        (first,) = arrays
        if type(first) is not cls:
            return general(*arrays, **given)
        x = first._data
        if x is None or recording_scopes:
            x = current(first)
        try:
            out = kernel(x, **attrs) if attrs else kernel(x)
        except MXNetError:
            raise
        except KERNEL_ERRORS as error:
            raise operator_error(op.name, (x,), error) from error
        if recording_scopes or type(out) is not Tensor:
            return _recorded(cls, out, arrays)
        array = new_object(cls)
        array._data = out
        array._tracked = None
        array._dtype = out.dtype
        array._ctx = first._ctx
        array._grad = None
        return array

    return function


def _of_two(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    kernel, recall, needs_attributes = op.kernel, _recall(op), bool(op.required)

    def take_kernel() -> None:
        nonlocal kernel
        kernel = op.kernel

    op.follow(take_kernel)

    def function(*arrays: Any, **given: Any) -> Any:
        attrs = recall(given) if given else None
        if len(arrays) != 2 or ((given or needs_attributes) and attrs is None):
            return general(*arrays, **given)
        first, second = arrays
        if type(first) is not cls or type(second) is not cls:
            return general(*arrays, **given)
        x, y = first._data, second._data
        if x is None or y is None or recording_scopes:
            x, y = current(first), current(second)
        try:
            out = kernel(x, y, **attrs) if attrs else kernel(x, y)
        except MXNetError:
            raise
        except KERNEL_ERRORS as error:
            raise operator_error(op.name, (x, y), error) from error
        if recording_scopes or type(out) is not Tensor:
            return _recorded(cls, out, arrays)
        array = new_object(cls)
        array._data = out
        array._tracked = None
        array._dtype = out.dtype
        array._ctx = first._ctx
        array._grad = None
        return array

    return function


def _of_many(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    n_inputs, kernel = len(op.inputs), op.kernel
    recall, needs_attributes = _recall(op), bool(op.required)

    def take_kernel() -> None:
        nonlocal kernel
        kernel = op.kernel

    op.follow(take_kernel)

    def function(*arrays: Any, **given: Any) -> Any:
        attrs = recall(given) if given else None
        if len(arrays) != n_inputs or ((given or needs_attributes) and attrs is None):
            return general(*arrays, **given)
        for array in arrays:
            if type(array) is not cls:
                return general(*arrays, **given)
        tensors = [current(array) for array in arrays]
        try:
            out = kernel(*tensors, **(attrs or {}))
        except MXNetError:
            raise
        except KERNEL_ERRORS as error:
            raise operator_error(op.name, tensors, error) from error
        return _recorded(cls, out, arrays)

    return function


def _recall(op: Op) -> Callable[[dict], dict | None]:
    """Return a function that finds attributes parsed before, by the words of the caller."""
    parsed = op.parsed_attributes

    def recall(given: dict) -> dict | None:
        try:
            return parsed.get(tuple(given.items()))
        except TypeError:  # a list among the attributes
            return None

    return recall


def _recorded(cls: type[NDArray], out: Any, sources: tuple) -> Any:
    """Return the arrays of an operator with several outputs, or of a recorded one."""
    if type(out) is Tensor:
        return wrap_recorded(cls, out, out.dtype, sources)
    return [wrap_recorded(cls, each, each.dtype, sources) for each in out]


def _unary(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    """Return the function of an elementwise operator; on floats its bare kernel will do."""
    kernel = op.kernel

    def take_kernel() -> None:
        nonlocal kernel
        kernel = op.raw if op.gradient_rule is None else op.kernel

    op.follow(take_kernel)

    def function(data: Any = None, *rest: Any, **given: Any) -> Any:
        if type(data) is not cls or rest or given:
            return general(data, *rest, **given)
        dtype, x = data._dtype, data._data
        if dtype not in FLOATING:
            return general(data)
        if x is None or recording_scopes:
            return wrap_recorded(cls, kernel(current(data)), dtype, (data,))
        array = new_object(cls)
        array._data = kernel(x)
        array._tracked = None
        array._dtype = dtype
        array._ctx = data._ctx
        array._grad = None
        return array

    return function


def _general(op: Op, cls: type[NDArray]) -> Callable:
    """Return the function that sorts any mix of arguments before it calls `invoke`."""
    inputs = [i.name for i in op.inputs]
    n_inputs = len(inputs)
    slots = [*inputs, *op.attributes, "out", "name"]

    def function(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        if "name" in kwargs and "name" not in op.attributes:
            del kwargs["name"]
        if len(args) > len(slots):
            raise TypeError(f"{op.name} takes at most {len(slots)} arguments, got {len(args)}")
        for key, value in zip(slots[n_inputs:], args[n_inputs:], strict=False):
            if key == "out":
                out = value
            elif key != "name":
                kwargs[key] = value
        arrays = list(args[:n_inputs])
        for key in inputs[len(arrays) :]:
            arrays.append(kwargs.pop(key, None))
        for key, array in zip(inputs, arrays, strict=True):
            if array is not None and not isinstance(array, Handle):
                raise _not_an_array(key, array)
        return invoke(op, arrays, kwargs, out, cls=cls)

    return function


def _variadic(op: Op, cls: type[NDArray]) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        kwargs.pop("name", None)
        named = {k: kwargs.pop(k) for k, v in list(kwargs.items()) if isinstance(v, Handle)}
        if named:  # only operators that name their own inputs (Custom) take arrays by keyword
            args = _by_own_names(op, args, named, kwargs)
        if len(args) == 1 and isinstance(args[0], list | tuple):
            args = args[0]
        for array in args:
            if not isinstance(array, Handle):
                raise _not_an_array(op.variadic, array)
        if op.count is not None:
            _check_count(op, kwargs, len(args))
        return invoke(op, args, kwargs, out, cls=cls)

    return function


def _by_own_names(op: Op, args: tuple, named: dict, kwargs: dict) -> list:
    names = op.names_of_inputs(op.complete(op.parse(kwargs)), len(args) + len(named))
    unknown = [k for k in named if k not in names[len(args) :]]
    if unknown:
        raise MXNetError(
            f"Operator {op.name} has no input {unknown[0]!r} left: its inputs are {names}."
        )
    return [*args, *(named[n] for n in names[len(args) :] if n in named)]


def _check_count(op: Op, kwargs: dict, given: int) -> None:
    if op.count in op.attributes:
        kwargs.setdefault(op.count, given)
        return
    told = kwargs.pop(op.count, None)
    if told is not None and int(told) != given:
        raise MXNetError(f"Operator {op.name}: {op.count}={told}, but {given} arrays were given.")


def _not_an_array(key: str, value: Any) -> InvalidType:
    return InvalidType(
        f"Argument {key} must have NDArray type, but got {value!r} of {type(value).__name__}. "
        "Wrap it: mx.nd.array(value)."
    )


def populate(modules: dict[str, ModuleType], cls: type[NDArray]) -> None:
    """Put a function for every registered name into its namespace module."""
    show_all(modules, "ndarray", lambda op, name: make_function(op, name, cls))


def add_methods(cls: type[NDArray]) -> None:
    """Give the class a method for each operator that is declared with ``method=True``."""
    for name in registry.names():
        op = registry.get(name)
        if op.method and not name.startswith("_") and name not in vars(cls):
            setattr(cls, name, as_method(make_function(op, name, cls), cls.__name__))
