"""Makes `mx.nd.X` and array methods from the operator registry."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..error import MXNetError
from ..ops import registry
from ..ops.declare import Op, operator_error
from ..ops.presentation import as_method, dress, show_all
from .invoke import KERNEL_ERRORS, invoke
from .state import recording_scopes
from .storage import Handle, current, new_object, note_constant, wrap

if TYPE_CHECKING:
    from .core import NDArray

FLOATING = frozenset({torch.float32, torch.float64, torch.float16, torch.bfloat16})


def make_function(op: Op, name: str, cls: type[NDArray]) -> Callable:
    """Return the eager function of an operator, with a real signature and docstring."""
    function = _variadic(op, cls) if op.variadic is not None else _fixed(op, cls)
    return dress(function, op, name, "mxnet.ndarray.op", "NDArray")


def _fixed(op: Op, cls: type[NDArray]) -> Callable:
    """Return the function of an operator with a fixed list of inputs."""
    general = _general(op, cls)
    if op.raw is not None and len(op.inputs) == 1 and not op.attributes:
        return _unary(op, cls, general)
    if op.optional or op.context_parameter is not None or not op.inputs:
        return general
    n_inputs, parsed, kernel = len(op.inputs), op.parsed_attributes, op.kernel
    nothing = None if op.required else {}

    def function(*args: Any, **kwargs: Any) -> Any:
        # The short way: dense arrays by position, and attributes that were parsed before.
        if len(args) != n_inputs:
            return general(*args, **kwargs)
        attrs = nothing
        if kwargs:
            try:
                attrs = parsed.get(tuple(kwargs.items()))
            except TypeError:  # a list among the attributes
                attrs = None
        if attrs is None:
            return general(*args, **kwargs)
        tensors = []
        for array in args:
            if type(array) is not cls:
                return general(*args, **kwargs)
            tensor = array._data
            if tensor is None or recording_scopes[0]:
                tensor = current(array)
            tensors.append(tensor)
        try:
            out = kernel(*tensors, **attrs) if attrs else kernel(*tensors)
        except MXNetError:
            raise
        except KERNEL_ERRORS as error:
            raise operator_error(op.name, tensors, error) from error
        if recording_scopes[0] or type(out) is not Tensor:
            return _recorded(cls, out, args)
        array = new_object(cls)
        array._data = out
        array._tracked = None
        array._ctx = args[0]._ctx
        array._grad = None
        return array

    return function


def _recorded(cls: type[NDArray], out: Any, inputs: tuple) -> Any:
    """Return the arrays of an operator with several outputs, or of a recorded one."""
    single = type(out) is Tensor
    made = [wrap(cls, t, inputs[0]._ctx) for t in ((out,) if single else out)]
    for array in made:
        note_constant(array, inputs)
    return made[0] if single else made


def _unary(op: Op, cls: type[NDArray], general: Callable) -> Callable:
    """Return the function of an elementwise operator; on floats its bare kernel will do."""
    kernel = op.raw if op.gradient_rule is None else op.kernel

    def function(*args: Any, **kwargs: Any) -> Any:
        if len(args) != 1 or kwargs:
            return general(*args, **kwargs)
        (data,) = args
        if type(data) is not cls:
            return general(data)
        tensor = data._data
        if tensor is None or recording_scopes[0]:
            tensor = current(data)
        if tensor.dtype not in FLOATING:
            return general(data)
        out = kernel(tensor)
        if recording_scopes[0]:
            return _recorded(cls, out, args)
        array = new_object(cls)
        array._data = out
        array._tracked = None
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


def _not_an_array(key: str, value: Any) -> TypeError:
    return TypeError(
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
