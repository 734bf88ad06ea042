"""Generates `mx.nd.X` and array methods from the operator registry."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from ..ops import registry
from ..ops.declare import Op
from ..ops.frontend import as_method, populate_namespaces, set_metadata
from ..runtime.calls import make_call_function
from ..runtime.composites.namespace import OperatorNamespace
from .ndarray import NDArray


def make_function(op: Op, name: str, cls: type[NDArray]) -> Callable:
    """Return the eager function of an operator, with its signature and docstring."""
    return set_metadata(make_call_function(op, cls), op, name, "mxnet.ndarray.op", "NDArray")


def populate(modules: dict[str, ModuleType], cls: type[NDArray]) -> None:
    """Add a function for every registered name to its namespace module."""
    populate_namespaces(modules, "ndarray", lambda op, name: make_function(op, name, cls))


def add_methods(cls: type[NDArray]) -> None:
    """Add a method to the class for each operator that is declared with ``method=True``."""
    for name in registry.names():
        op = registry.get(name)
        if op.method and not name.startswith("_") and not hasattr(cls, name):
            setattr(cls, name, as_method(make_function(op, name, cls), cls.__name__))


# The operator namespace of composites on arrays.
F = OperatorNamespace(NDArray, lambda op, name: make_function(op, name, NDArray))
