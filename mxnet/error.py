"""`MXNetError` and its subclasses, which also derive from the matching builtin errors."""

from __future__ import annotations

import contextlib
import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

__all__ = [
    "AttributeConversionError",
    "AxisOutOfRange",
    "DTypeError",
    "FormatError",
    "IndexError",
    "InternalError",
    "InvalidType",
    "InvalidValue",
    "MXNetError",
    "NotImplementedForSymbol",
    "OutOfMemory",
    "OutOfRange",
    "ShapeError",
    "TypeError",
    "UnknownAttribute",
    "ValueError",
    "register",
    "register_error",
]

ErrorType = TypeVar("ErrorType", bound=type[BaseException])
_registered: dict[str, type[BaseException]] = {}


class MXNetError(RuntimeError):
    """Base of all errors about computations, graphs and files.

    Attributes
    ----------
    node : str, optional
        Name of the failed node, for errors of executors and hybridized blocks.

    >>> try:
    ...     mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))
    ... except mx.MXNetError as error:
    ...     print(type(error).__name__)
    ShapeError
    """

    node: str | None = None


class ShapeError(MXNetError, ValueError):
    """Raised if shapes do not match.

    >>> try:
    ...     mx.nd.dot(mx.nd.ones((2, 3)), mx.nd.ones((2, 3)))
    ... except mx.error.ShapeError:
    ...     print("the shapes do not fit")
    the shapes do not fit
    """


class DTypeError(MXNetError, TypeError):
    """Raised if data types do not match.

    >>> try:
    ...     mx.nd.broadcast_add(mx.nd.ones(2), mx.nd.ones(2, dtype="int32"))
    ... except mx.error.DTypeError:
    ...     print("the types do not fit")
    the types do not fit
    """


class UnknownAttribute(MXNetError, TypeError):
    """Raised for an unknown argument of an operator.

    >>> try:
    ...     mx.nd.FullyConnected(mx.nd.ones((1, 2)), mx.nd.ones((3, 2)), num_hiden=3)
    ... except mx.error.UnknownAttribute:
    ...     print("no such argument")
    no such argument
    """


class AttributeConversionError(MXNetError, ValueError):
    """Raised if the value of an operator's argument cannot be parsed.

    >>> try:
    ...     mx.nd.Activation(mx.nd.ones(2), act_type="no such function")
    ... except mx.error.AttributeConversionError:
    ...     print("not a value of act_type")
    not a value of act_type
    """


class OutOfMemory(MXNetError, MemoryError):
    """Raised if memory cannot be allocated; the process continues.

    >>> issubclass(mx.error.OutOfMemory, MemoryError)
    True
    """


class FormatError(MXNetError, ValueError):
    """Raised if a file is damaged, truncated or of a different format.

    >>> try:
    ...     mx.nd.load_frombuffer(b"not a file of arrays")
    ... except mx.error.FormatError:
    ...     print("not of this format")
    not of this format
    """


# MXNet checks arguments with `assert`, and programs catch AssertionError.


class InvalidValue(MXNetError, AssertionError, ValueError):
    """Raised for an invalid value of an argument.

    >>> issubclass(mx.error.InvalidValue, ValueError)
    True
    """


class InvalidType(MXNetError, AssertionError, TypeError):
    """Raised for an invalid type of an argument.

    >>> issubclass(mx.error.InvalidType, TypeError)
    True
    """


class OutOfRange(MXNetError, IndexError):
    """Raised if an index or axis is out of range for an operator's input.

    >>> issubclass(mx.error.OutOfRange, IndexError)
    True
    """


class AxisOutOfRange(ShapeError, np.exceptions.AxisError):
    """Raised if an array has no axis with the given number.

    >>> issubclass(mx.error.AxisOutOfRange, IndexError)
    True
    """

    axis = ndim = None  # part of the message
    __str__ = Exception.__str__


_ALLOCATIONS = re.compile(
    r"tried to allocate (?P<bytes>\d+) bytes|Tried to allocate (?P<text>[\d.]+ \w+)"
    r"|Unable to allocate (?P<numpy>[\d.]+ \w+)|(?P<overflow>Storage size calculation overflowed)"
)


def memory_error(error: BaseException, what: str) -> OutOfMemory | None:
    """Convert the error of a failed allocation to `OutOfMemory`; None for other errors.

    >>> error = memory_error(RuntimeError("you tried to allocate 17179869184 bytes."), "zeros")
    >>> str(error).partition(". ")[0]
    'zeros: out of memory: 16.0 GiB (17179869184 bytes) were requested'
    """
    match = _ALLOCATIONS.search(str(error))
    if match is None and not isinstance(error, MemoryError):
        return None
    amount = "more than there is"
    if match is not None and match["bytes"]:
        count = int(match["bytes"])
        amount = f"{count / 2**30:.1f} GiB ({count} bytes)"
    elif match is not None and not match["overflow"]:
        amount = match["text"] or match["numpy"]
    elif match is not None:
        amount = "more than any machine has"
    return OutOfMemory(
        f"{what}: out of memory: {amount} were requested. Use smaller arrays or batches, or free "
        "unused arrays."
    )


@contextlib.contextmanager
def reporting_memory(what: str) -> Iterator[None]:
    """Return a scope that raises `OutOfMemory` for failed allocations."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, MXNetError):
            raise
        described = memory_error(error, what)
        if described is None:
            raise
        raise described from error


def register_error(
    func_name: str | ErrorType | None = None, cls: ErrorType | None = None
) -> ErrorType | Callable[[ErrorType], ErrorType]:
    """Register an exception class under a name, as a decorator or directly.

    Parameters
    ----------
    func_name
        The name, or the class.

    >>> @register_error
    ... class MyError(MXNetError):
    ...     pass
    >>> MyError.__name__
    'MyError'
    """
    if isinstance(func_name, type):
        cls, func_name = func_name, func_name.__name__

    def remember(error: ErrorType) -> ErrorType:
        _registered[func_name or error.__name__] = error
        return error

    return remember if cls is None else remember(cls)


register = register_error


@register_error
class InternalError(MXNetError):
    """Raised if an internal invariant is violated: a bug in MXNext.

    >>> issubclass(mx.error.InternalError, mx.MXNetError)
    True
    """


for _builtin in (TypeError, ValueError, IndexError, AttributeError):
    register_error(_builtin.__name__, _builtin)

TypeError = TypeError
ValueError = ValueError
IndexError = IndexError


class NotImplementedForSymbol(MXNetError, NotImplementedError):
    """Raised if a method that needs values is called on a Symbol.

    Parameters
    ----------
    function
        The method, or its name.
    alias
        Replacement of the method.
    args
        Arguments of the call.

    >>> try:
    ...     mx.sym.var("x").asnumpy()
    ... except mx.error.NotImplementedForSymbol:
    ...     print("a symbol has no values")
    a symbol has no values
    """

    def __init__(self, function: Callable | str, alias: str | None = None, *args: object) -> None:
        name = function if isinstance(function, str) else function.__name__
        hint = f" Use {alias} instead." if alias else ""
        kinds = ", ".join(type(a).__name__ for a in args)
        super().__init__(
            f"Function {name}({kinds}) is not implemented for Symbol and only available in NDArray."
            + hint
        )


def add_note(error: BaseException, text: str) -> None:
    """Add a line to the message of an error.

    >>> error = mx.MXNetError("bad image")
    >>> add_note(error, "In sample 7.")
    >>> str(error).splitlines()
    ['bad image', 'In sample 7.']
    """
    if isinstance(error, MXNetError) and len(error.args) == 1:
        error.args = (f"{error.args[0]}\n{text}",)
    elif (add := getattr(error, "add_note", None)) is not None:  # Python 3.11
        add(text)


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a sentence that names the closest known spelling, or an empty string.

    >>> did_you_mean("num_hiden", ["num_hidden", "no_bias"])
    "Did you mean 'num_hidden'?"
    """
    names = list(names)
    close = difflib.get_close_matches(name, names, n=1) or [
        k for k in names if k.lower() == name.lower()
    ]
    return f"Did you mean {close[0]!r}?" if close else ""
