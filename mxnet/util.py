"""Classic and NumPy semantics, and system queries.

Each thread has two settings: the shape semantics (in `base`) and the class of new arrays, classic
or `mx.np`.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from . import accelerator
from .base import (  # noqa: F401 (MXNet shows them here)
    MXNetError,
    c_str,
    check_call,
    choose_np_shape,
    is_np_shape,
    py_str,
)
from .context import Context, num_gpus

Thing = TypeVar("Thing", bound=Callable)


class _Innermost(threading.local):
    """The innermost scope of each thread."""

    value: Any = None


class _NumpyArrayScope:
    """Scope in which blocks create arrays of `mx.np`, or classic ones; thread-local."""

    _current: ClassVar[Any] = _Innermost()

    def __init__(self, is_np_array: bool) -> None:
        self._old_scope: Any = None
        self._is_np_array = is_np_array

    def __enter__(self) -> _NumpyArrayScope:
        current = _NumpyArrayScope._current
        self._old_scope = getattr(current, "value", None) or _NumpyArrayScope(False)
        current.value = self
        return self

    def __exit__(self, *error: object) -> None:
        _NumpyArrayScope._current.value = self._old_scope


# -- settings ------------------------------------------------------------------------------


def is_np_array() -> bool:
    """Return whether blocks create `mx.np.ndarray`s instead of classic arrays in this thread.

    >>> is_np_array()
    False
    """
    scope = getattr(_NumpyArrayScope._current, "value", None)  # programs may replace it
    return scope is not None and scope._is_np_array


def set_np_shape(active: bool | int) -> bool:
    """Set NumPy or classic shape semantics; return the previous setting.

    In NumPy semantics ``()`` is the shape of a scalar and 0 is a size; in classic semantics both
    mean "unknown".

    Parameters
    ----------
    active
        Whether to use NumPy semantics; 2: in all threads.

    >>> before = set_np_shape(True)
    >>> mx.nd.ones(()).shape, set_np_shape(before)
    ((), True)
    """
    if not active and is_np_array():
        raise ValueError(
            "Deactivating NumPy shape semantics while NumPy array semantics is still active is not "
            "allowed. Please consider calling `npx.reset_np()` to deactivate both of them."
        )
    if active:
        _log_once("NumPy-shape semantics has been activated in your code.")
    return choose_np_shape(active)


@functools.cache
def _log_once(message: str) -> None:
    logging.info(message)


def set_np(shape: bool = True, array: bool = True) -> None:
    """Set both semantics; arrays of `mx.np` require NumPy shapes.

    Parameters
    ----------
    shape
        Whether to use NumPy shape semantics.
    array
        Whether blocks create arrays of `mx.np`.

    >>> set_np(shape=True, array=False)
    >>> is_np_shape()
    True
    >>> reset_np()
    """
    if not shape and array:
        raise ValueError("NumPy Shape semantics is required in using NumPy array semantics.")
    if array:
        _log_once("NumPy array semantics has been activated in your code.")
    _NumpyArrayScope._current.value = _NumpyArrayScope(bool(array))
    set_np_shape(shape)


def reset_np() -> None:
    """Restore classic shape semantics and classic arrays.

    >>> mx.npx.set_np()
    >>> mx.npx.reset_np()
    >>> mx.util.is_np_array()
    False
    """
    set_np(shape=False, array=False)


@contextmanager
def np_shape(active: bool = True) -> Iterator[None]:
    """Return a scope with NumPy shape semantics, or with False classic ones.

    Parameters
    ----------
    active
        Whether to use NumPy semantics.

    >>> with np_shape():
    ...     mx.nd.zeros((0, 2)).shape
    (0, 2)
    """
    previous = choose_np_shape(active)
    try:
        yield
    finally:
        choose_np_shape(previous)


def np_array(active: bool = True) -> _NumpyArrayScope:
    """Return a scope in which blocks create arrays of `mx.np`, or with False classic ones.

    Parameters
    ----------
    active
        Whether to use NumPy semantics.

    >>> with mx.util.np_array():
    ...     mx.util.is_np_array()
    True
    """
    return _NumpyArrayScope(bool(active))


def _decorate(func: Any, name: str, scope: Callable[[], Any]) -> Any:
    if inspect.isclass(func):
        for key, value in _members(func).items():
            wrapped = _decorate_member(value, name, scope)
            if wrapped is not None:
                setattr(func, key, wrapped)
        return func
    if not callable(func):
        raise TypeError(
            f"{name} can only decorate classes and callable objects, while received a {type(func)}"
        )

    @functools.wraps(func)
    def within(*args: Any, **kwargs: Any) -> Any:
        with scope():
            return func(*args, **kwargs)

    return within


def _members(cls: type) -> dict[str, Any]:
    """Return the attributes that a class defines, and inherited public methods and properties.

    Inherited methods such as `initialize` create arrays too. Attribute access is not wrapped.
    """
    inherited = {
        key: value
        for base in reversed(cls.__mro__[1:-1])
        for key, value in vars(base).items()
        if inspect.isfunction(value) or isinstance(value, property)
        if key.startswith("__") or not key.startswith("_")
    }
    for key in ("__getattr__", "__getattribute__", "__setattr__", "__delattr__"):
        inherited.pop(key, None)
    return {**inherited, **vars(cls)}


def _decorate_member(value: Any, name: str, scope: Callable[[], Any]) -> Any:
    if inspect.isfunction(value):
        return _decorate(value, name, scope)
    if isinstance(value, staticmethod | classmethod):
        return type(value)(_decorate(value.__func__, name, scope))
    if isinstance(value, property):
        parts = (value.fget, value.fset, value.fdel)
        fget, fset, fdel = (p and _decorate(p, name, scope) for p in parts)
        return property(fget, fset, fdel, value.__doc__)
    return None


def use_np_shape(func: Thing) -> Thing:
    """Run a function, or all methods of a class, with NumPy shape semantics.

    Parameters
    ----------
    func
        The function, or the class.

    >>> @use_np_shape
    ... def one():
    ...     return mx.nd.ones(()).shape
    >>> one(), is_np_shape()
    ((), False)
    """
    return _decorate(func, "use_np_shape", np_shape)


def use_np_array(func: Thing) -> Thing:
    """Run a function, or all methods of a class, with arrays of `mx.np`.

    Parameters
    ----------
    func
        The function, or the class.

    >>> @mx.util.use_np_array
    ... def uses_np():
    ...     return mx.util.is_np_array()
    >>> uses_np()
    True
    """
    return _decorate(func, "use_np_array", np_array)


def use_np(func: Thing) -> Thing:
    """Run a function, or all methods of a class, with NumPy's shapes and arrays of `mx.np`.

    Parameters
    ----------
    func
        The function, or the class.

    >>> @mx.util.use_np
    ... def is_scalar():
    ...     return mx.np.ones(()).shape == ()
    >>> is_scalar()
    True
    """
    return use_np_shape(use_np_array(func))


def set_module(module: str | None) -> Callable[[Thing], Thing]:
    """Set the ``__module__`` of a function or class.

    Parameters
    ----------
    module
        Name of the module.

    >>> @set_module("mxnet.numpy")
    ... def example(): ...
    >>> example.__module__
    'mxnet.numpy'
    """

    def decorate(func: Thing) -> Thing:
        if module is not None:
            func.__module__ = module
        return func

    return decorate


# -- NumPy's arguments of universal functions that MXNet does not support ------------------------

# Accepted values.
_UFUNC_DEFAULTS = {
    "where": True,
    "casting": "same_kind",
    "order": "K",
    "dtype": None,
    "subok": True,
}
_UFUNC_VALUES = {
    "casting": ("no", "equiv", "safe", "same_kind", "unsafe"),
    "dtype": ("int8", "uint8", "int32", "int64", "float16", "float32", "float64"),
    "subok": (True, False),
}


def np_ufunc_legal_option(key: str, value: Any) -> bool:
    """Return whether NumPy's universal functions take an argument with this value.

    Parameters
    ----------
    key
        Name of the argument.
    value
        Value of the argument.

    >>> np_ufunc_legal_option("casting", "unsafe"), np_ufunc_legal_option("casting", "fast")
    (True, False)
    """
    if key == "where":
        return True
    if key == "order":
        return isinstance(value, str)
    if key == "dtype" and isinstance(value, type):
        value = value.__name__
    return any(value is v or value == v for v in _UFUNC_VALUES.get(key, ()))


def check_ufunc_keywords(name: str, given: dict[str, Any]) -> None:
    """Raise for keywords that NumPy does not have, and for values other than the default.

    Parameters
    ----------
    name
        The function, for the message.
    given
        The keywords.

    >>> check_ufunc_keywords("exp", {"where": True})
    >>> check_ufunc_keywords("exp", {"casting": "fast"})
    Traceback (most recent call last):
    TypeError: casting=fast not understood for operator exp
    """
    for key, value in given.items():
        if key not in _UFUNC_DEFAULTS:
            raise TypeError(f"{key} is an invalid keyword to function {name!r}")
        default = _UFUNC_DEFAULTS[key]
        if value is default or value == default:
            continue
        if np_ufunc_legal_option(key, value):
            raise NotImplementedError(f"{key}={value} is not implemented yet for operator {name}.")
        raise TypeError(f"{key}={value} not understood for operator {name}")


def _wrap_ufunc(func: Callable) -> Callable:
    @functools.wraps(func)
    def checked(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        check_ufunc_keywords(func.__name__, kwargs)
        return func(*args, out=out)

    return checked


def wrap_np_unary_func(func: Callable) -> Callable:
    """Wrap a unary function to accept NumPy's other arguments with default values.

    Parameters
    ----------
    func
        The function, or the class.

    >>> @wrap_np_unary_func
    ... def double(x, out=None):
    ...     return 2 * x
    >>> double(3, where=True)
    6
    """
    return _wrap_ufunc(func)


def wrap_np_binary_func(func: Callable) -> Callable:
    """Wrap a binary function to accept NumPy's other arguments with default values.

    Parameters
    ----------
    func
        The function, or the class.

    >>> @wrap_np_binary_func
    ... def add(x1, x2, out=None):
    ...     return x1 + x2
    >>> add(1, 2, where=True)
    3
    """
    return _wrap_ufunc(func)


# -- the system --------------------------------------------------------------------------------


def getenv(name: str) -> str | None:
    """Return an environment variable, or None.

    Parameters
    ----------
    name
        Name of the variable.

    >>> mx.util.getenv("NO_SUCH_VARIABLE") is None
    True
    """
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable, for Python and for C libraries; None removes it.

    Parameters
    ----------
    name
        Name of the variable.
    value
        Its value; None removes it.

    >>> setenv("MY_SWITCH", "1")
    >>> getenv("MY_SWITCH"), setenv("MY_SWITCH", None)
    ('1', None)
    """
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def get_gpu_count() -> int:
    """Return how many GPUs can be used.

    >>> mx.util.get_gpu_count() == mx.context.num_gpus()
    True
    """
    return num_gpus()


def get_gpu_memory(gpu_dev_id: int) -> tuple[int, int]:
    """Return (free, total) bytes of a GPU's memory.

    Parameters
    ----------
    gpu_dev_id
        Number of the GPU.

    >>> if mx.util.get_gpu_count():
    ...     free, total = mx.util.get_gpu_memory(0)
    """
    return accelerator.memory_info(gpu_dev_id)


def get_cuda_compute_capability(ctx: Context) -> int:
    """Return the compute capability of a GPU: 70 for sm_70.

    Parameters
    ----------
    ctx
        The GPU.

    >>> if mx.context.num_gpus():
    ...     mx.util.get_cuda_compute_capability(mx.gpu(0))
    """
    if ctx.device_type != "gpu":
        raise ValueError(
            f"Expecting a gpu context to get cuda compute capability, while received ctx {ctx}"
        )
    major, minor = accelerator.capability(ctx.device_id)
    return 10 * major + minor
