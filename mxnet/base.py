"""Basic definitions: errors, number types, Null, shape semantics, helpers for C libraries.

MXNext has no C library: `_LIB` implements the functions of MXNet's library that programs call in
Python, and raises an error for others. The ctypes helpers are for these calls and for programs with
their own C libraries.
"""

from __future__ import annotations

import ctypes
import inspect
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from . import error
from ._process import env
from .error import MXNetError, NotImplementedForSymbol, register_error
from .libinfo import __version__  # noqa: F401 (MXNet shows it here)

__all__ = [
    "MXNetError",
    "NotImplementedForSymbol",
    "register_error",
]

long = int
basestring = str
string_types = (str,)
numeric_types = (float, int, np.generic)
integer_types: tuple[type, ...] = (int, np.int32, np.int64)
error_types = error._registered

mx_int = ctypes.c_int
mx_uint = ctypes.c_uint
mx_int64 = ctypes.c_int64
mx_float = ctypes.c_float
mx_float_p = ctypes.POINTER(ctypes.c_float)
mx_real_t = np.float32
NDArrayHandle = FunctionHandle = OpHandle = CachedOpHandle = SymbolHandle = ctypes.c_void_p
ExecutorHandle = DataIterCreatorHandle = DataIterHandle = KVStoreHandle = ctypes.c_void_p
RecordIOHandle = RtcHandle = CudaModuleHandle = CudaKernelHandle = ctypes.c_void_p
ProfileHandle = DLPackHandle = ctypes.c_void_p


_INSIDE = tuple(str(Path(file).parent) + os.sep for file in (__file__, torch.__file__))


def users_stacklevel() -> int:
    """Return the `stacklevel` for which `warnings.warn` shows the user's line.

    A constant would be correct for one call path only; hooks, hybrid blocks and fused calls have
    different stack depths.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_INSIDE):
        frame, level = frame.f_back, level + 1
    return level


class MXCallbackList(ctypes.Structure):
    """A list of C callbacks and their arguments."""

    _fields_ = (
        ("num_callbacks", ctypes.c_int),
        ("callbacks", ctypes.POINTER(ctypes.CFUNCTYPE(ctypes.c_int))),
        ("contexts", ctypes.POINTER(ctypes.c_void_p)),
    )


class _Library:
    """Python implementations of functions of MXNet's C library."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from ._compat.c_library import FUNCTIONS

        if name in FUNCTIONS:
            return FUNCTIONS[name]
        raise MXNetError(
            f"{name} is a function of MXNet's C library. MXNext has none: its kernels are "
            "PyTorch's. Use the Python interface, or torch itself."
        )


_LIB = _Library()


class _NullType:
    def __repr__(self) -> str:
        return "_Null"

    def __bool__(self) -> bool:
        return False


_Null = _NullType()


def _as_list(obj: Any) -> list:
    """Return lists and tuples as a list, anything else as a list of one.

    >>> _as_list(3), _as_list((1, 2))
    ([3], [1, 2])
    """
    return list(obj) if isinstance(obj, list | tuple) else [obj]


class classproperty:
    """A property of a class; in an `AssignableClass` it may have a setter."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func = func
        self.assign: Callable[[Any, Any], None] | None = None

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.func(owner)

    def __set__(self, instance: Any, value: Any) -> None:
        if self.assign is None:
            raise AttributeError(f"{self.func.__name__} of {type(instance).__name__} is read-only.")
        self.assign(type(instance), value)

    def setter(self, function: Callable[[Any, Any], None]) -> classproperty:
        """Add a setter to the property."""
        self.assign = function
        return self


class AssignableClass(type):
    """Metaclass of classes with an assignable `classproperty`: ``Scope.current = scope``."""

    def __setattr__(cls, name: str, value: Any) -> None:
        for base in cls.__mro__:
            attribute = base.__dict__.get(name)
            if isinstance(attribute, classproperty) and attribute.assign is not None:
                attribute.assign(cls, value)
                return
        super().__setattr__(name, value)


def with_metaclass(meta: type, *bases: type) -> type:
    """Return a base class with the given metaclass.

    >>> class Kind(type): ...
    >>> class Thing(with_metaclass(Kind, dict)): ...
    >>> type(Thing) is Kind, Thing.__mro__[1] is dict
    (True, True)
    """

    class Temporary(type):
        def __new__(cls, name: str, _: tuple, body: dict) -> type:
            return meta(name, bases, body)

        @classmethod
        def __prepare__(cls, name: str, _: tuple, **kwargs: Any) -> Any:
            return meta.__prepare__(name, bases, **kwargs)

    return type.__new__(Temporary, "temporary_class", (), {})


# -- between Python and C ----------------------------------------------------------------------


def py_str(x: bytes | str) -> str:
    """Return decoded bytes, or a string unchanged.

    Parameters
    ----------
    x
        Bytes, or text.

    >>> py_str(b"relu")
    'relu'
    """
    return x if isinstance(x, str) else x.decode("utf-8")


def c_str(string: str) -> ctypes.c_char_p:
    """Return a C string.

    Parameters
    ----------
    string
        The text.

    >>> c_str("relu").value
    b'relu'
    """
    return ctypes.c_char_p(string.encode("utf-8"))


def c_str_array(strings: Sequence[str]) -> ctypes.Array:
    """Return a C array of strings.

    Parameters
    ----------
    strings
        The texts.

    >>> list(c_str_array(["a", "b"]))
    [b'a', b'b']
    """
    return (ctypes.c_char_p * len(strings))(*(s.encode("utf-8") for s in strings))


def c_array(ctype: Any, values: Sequence) -> ctypes.Array:
    """Return a C array of the values.

    Parameters
    ----------
    ctype
        Type of the elements.
    values
        The values.

    >>> list(c_array(ctypes.c_int, [1, 2]))
    [1, 2]
    """
    return (ctype * len(values))(*values)


def c_array_buf(ctype: Any, buf: Any) -> ctypes.Array:
    """Return a C array in the memory of a writable buffer, such as an ``array.array``."""
    return (ctype * len(buf)).from_buffer(buf)


def c_handle_array(objs: Iterable[Any]) -> ctypes.Array:
    """Return a C array of the handles of arrays, which functions of `_LIB` take.

    Parameters
    ----------
    objs
        The arrays.

    >>> len(c_handle_array([mx.nd.ones(2)]))
    1
    """
    addresses = [_address(o) for o in objs]
    return (ctypes.c_void_p * len(addresses))(*addresses)


def _address(array: Any) -> int:
    pointer = getattr(array, "_as_parameter_", None)
    if pointer is not None:
        return pointer.value
    return array.handle if isinstance(array.handle, int) else id(array.handle)


def ctypes2buffer(cptr: Any, length: int) -> bytearray:
    """Return a copy of `length` bytes behind a C pointer to char."""
    if not isinstance(cptr, ctypes.POINTER(ctypes.c_char)):
        raise TypeError("expected char pointer")
    return bytearray(ctypes.string_at(cptr, length))


def ctypes2numpy_shared(cptr: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Return a NumPy array in the memory behind a C pointer to float."""
    if not isinstance(cptr, mx_float_p):
        raise RuntimeError("expected float pointer")
    return np.ctypeslib.as_array(cptr, shape=tuple(shape))


def check_call(ret: int) -> None:
    """Raise if a C function has returned an error code.

    Parameters
    ----------
    ret
        What the function returned; 0 is success.

    >>> check_call(0)
    """
    if ret != 0:
        raise _error_of_library() or get_last_ffi_error(ret)


def _error_of_library() -> BaseException | None:
    """Return and clear the error of the last failed function of `_LIB`."""
    from ._compat.c_library import last_error

    return last_error()


def get_last_ffi_error(ret: int | None = None) -> MXNetError:
    """Return an error for a failed C function; without a C library there are no details."""
    code = "" if ret is None else f" with code {ret}"
    return MXNetError(f"A C function failed{code}. It was not MXNext's, which has no C library.")


def c2pyerror(err_msg: str) -> tuple[str, str | None]:
    """Return a C library's message with its stack in Python's order, and its error type.

    >>> c2pyerror("ValueError: too small")
    ('ValueError: too small', 'ValueError')
    """
    kind = re.match(r"[A-Za-z_][\w.]*(?=:)", err_msg)
    message, stack, in_stack = [], [], False
    for line in err_msg.splitlines():
        if line.startswith("Stack trace"):
            in_stack = True
        elif in_stack and line.startswith("  "):
            stack.append(line)
        else:
            in_stack = False
            message.append(line)
    if stack:
        message = ["Traceback (most recent call last):", *reversed(stack), *message]
    return "\n".join(message), kind and kind.group()


# -- documentation and folders ------------------------------------------------------------------


def build_param_doc(
    arg_names: Sequence[str],
    arg_types: Sequence[str],
    arg_descs: Sequence[str],
    remove_dup: bool = True,
) -> str:
    """Return the "Parameters" part of a docstring.

    >>> build_param_doc(["axis"], ["int"], ["Where to sum."]).splitlines()[2:]
    ['axis : int', '    Where to sum.']
    """
    lines, seen = ["Parameters", "----------"], set()
    for name, kind, text in zip(arg_names, arg_types, arg_descs, strict=True):
        if name in seen and remove_dup:
            continue
        seen.add(name)
        lines.append(f"{name} : {kind}")
        if text:
            lines.append(f"    {text}")
    return "\n".join(lines) + "\n"


def add_fileline_to_docstring(module: str | ModuleType, incursive: bool = True) -> None:
    """Append its place of definition to the docstring of each function of a module.

    With `incursive`, methods of the module's classes get theirs as well.
    """
    module = sys.modules[module] if isinstance(module, str) else module
    for thing in vars(module).values():
        if inspect.isfunction(thing):
            _tell_place(thing, module)
        elif inspect.isclass(thing) and incursive:
            for method in filter(inspect.isfunction, vars(thing).values()):
                _tell_place(method, module)


def _tell_place(function: Callable, module: ModuleType) -> None:
    if function.__doc__ and function.__module__ == module.__name__:
        code = function.__code__
        function.__doc__ += f"\n\nFrom:{code.co_filename}:{code.co_firstlineno}"


def data_dir_default() -> str:
    """Return the default folder of models and data sets, used without ``MXNET_HOME``."""
    if sys.platform == "win32":
        return str(Path.home() / "AppData" / "Roaming" / "mxnet")
    return str(Path.home() / ".mxnet")


def data_dir() -> str:
    """Return the folder of models and data sets: ``MXNET_HOME``, or the default."""
    chosen = env.get("MXNET_HOME")
    if chosen == env.VARIABLES["MXNET_HOME"].default:
        return data_dir_default()
    return str(Path(chosen).expanduser())


def __getattr__(name: str) -> Any:
    """Provide MXNet's name of the error of sparse arrays, which is defined elsewhere."""
    if name == "NotSupportedForSparseNDArray":
        from .ndarray.sparse.arrays import NotSupportedForSparseNDArray

        return NotSupportedForSparseNDArray
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# -- shape semantics of this thread ------------------------


class _Mode(threading.local):
    """Thread-local settings; class attributes are the defaults of new threads."""

    np_shape = False


_mode = _Mode()
_in_all_threads = False  # setting of set_np_shape(2)


def is_np_shape() -> bool:
    """Return whether NumPy shape semantics apply: 0 is a size, () a scalar.

    In classic semantics a size of 0 and the shape () are unknown.
    """
    return _mode.np_shape or _in_all_threads


def choose_np_shape(active: bool | int) -> bool:
    """Set the shape semantics and return the previous one; 2 sets it for all threads.

    >>> choose_np_shape(False)
    False
    """
    global _in_all_threads
    previous, _mode.np_shape = is_np_shape(), bool(active)
    _in_all_threads = active == 2
    return previous
