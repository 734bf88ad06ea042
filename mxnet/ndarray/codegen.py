"""Makes `mx.nd.X` and array methods from the operator registry."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..error import InvalidType, MXNetError
from ..imperative.apply import apply
from ..imperative.call_cache import of_any_number, of_floats, of_many, of_one, of_two
from ..imperative.handle import Handle
from ..ops import registry
from ..ops.declare import Op
from ..ops.frontend import as_method, populate_namespaces, set_metadata

if TYPE_CHECKING:
    from .ndarray import NDArray


def make_function(op: Op, name: str, cls: type[NDArray]) -> Callable:
    """Return the eager function of an operator, with a real signature and docstring."""
    return set_metadata(make_plain_function(op, cls), op, name, "mxnet.ndarray.op", "NDArray")


def make_plain_function(op: Op, cls: type[NDArray]) -> Callable:
    """Return the eager function of an operator, for use inside the house."""
    return _variadic(op, cls) if op.variadic is not None else _fixed(op, cls)


def _fixed(op: Op, cls: type[NDArray]) -> Callable:
    """Return the function of an operator with a fixed list of inputs."""
    general = _general(op, cls)
    if not op.inputs:
        return general
    if op.raw is not None and len(op.inputs) == 1 and not op.attributes:
        return of_floats(op, cls, general)
    if op.optional or any(i.optional for i in op.inputs):
        return of_many(op, cls, general)
    return {1: of_one, 2: of_two}.get(len(op.inputs), of_many)(op, cls, general)


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
        return apply(op, arrays, kwargs, out, cls=cls)

    return function


def _variadic(op: Op, cls: type[NDArray]) -> Callable:
    def general(*args: Any, **kwargs: Any) -> Any:
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
        return apply(op, args, kwargs, out, cls=cls)

    return of_any_number(op, cls, general)


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
    populate_namespaces(modules, "ndarray", lambda op, name: make_function(op, name, cls))


def add_methods(cls: type[NDArray]) -> None:
    """Give the class a method for each operator that is declared with ``method=True``."""
    for name in registry.names():
        op = registry.get(name)
        if op.method and not name.startswith("_") and name not in vars(cls):
            setattr(cls, name, as_method(make_function(op, name, cls), cls.__name__))
