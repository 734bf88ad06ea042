"""NumPy's dispatch: ``numpy.mean(x)`` of an array of `mx.np` calls ``mx.np.mean(x)``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

import numpy as onp

from ..runtime.array import Handle
from .fallback import call_numpy

# NumPy's function -> module and name of the function in mx.np.
_functions: dict[Any, tuple[ModuleType, str]] = {}

# `mx.np` has different functions of these names: NumPy computes them.
_DIFFERENT = (onp.linalg.svd, onp.ldexp, onp.histogram)

# Container of several results in the installed NumPy: a list, a tuple or a named tuple.
_CONTAINERS = {
    function: type(function(*(onp.ones(shape) for shape in shapes)))
    for function, shapes in {
        onp.atleast_1d: ((), ()),
        onp.atleast_2d: ((), ()),
        onp.atleast_3d: ((), ()),
        onp.broadcast_arrays: ((1,), (1,)),
        onp.linalg.eig: ((1, 1),),
        onp.linalg.eigh: ((1, 1),),
        onp.linalg.slogdet: ((1, 1),),
        onp.meshgrid: ((1,), (1,)),
    }.items()
}


def register_namespace(numpy_namespace: Any, module: ModuleType, names: Iterable[str]) -> None:
    """Register functions of a module that have the same names in a namespace of NumPy."""
    for name in names:
        original = getattr(numpy_namespace, name, None)
        if callable(original) and not isinstance(original, type) and original not in _DIFFERENT:
            _functions[original] = module, name


def _find(numpy_function: Any) -> Callable | None:
    """Return the function of `mx.np` for NumPy's function."""
    source = _functions.get(numpy_function)
    return None if source is None else getattr(*source)


def array_function(self: Any, func: Any, types: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run a function of NumPy's public interface on arrays of `mx.np` (NEP 18)."""
    function = _find(func)
    if function is None:
        return call_numpy(func, args, kwargs)
    if not all(issubclass(t, Handle) for t in types):
        return NotImplemented
    return _as_numpy_returns(func, function(*args, **kwargs))


def _as_numpy_returns(func: Any, result: Any) -> Any:
    """Return several results in the container of NumPy's function."""
    container = _CONTAINERS.get(func)
    if container is None or not isinstance(result, list | tuple):
        return result
    return container(*result) if hasattr(container, "_fields") else container(result)


def array_ufunc(self: Any, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
    """Run a universal function of NumPy on arrays of `mx.np` (NEP 13)."""
    if method != "__call__":
        return NotImplemented
    out = kwargs.pop("out", None)
    if out is not None:
        kwargs["out"] = out[0] if isinstance(out, tuple) and len(out) == 1 else out
    # A NumPy scalar takes the array's type, as before NumPy 2. In comparisons such as
    # ``numpy.float32(1) < x`` NumPy converts it to a 0-d array first.
    operands = tuple(x.item() if _is_numpy_scalar(x) else x for x in inputs)
    function = _find(ufunc)
    if function is None:
        return call_numpy(ufunc, operands, kwargs)
    return function(*operands, **kwargs)


def _is_numpy_scalar(x: Any) -> bool:
    return isinstance(x, onp.generic) or (isinstance(x, onp.ndarray) and x.ndim == 0)
