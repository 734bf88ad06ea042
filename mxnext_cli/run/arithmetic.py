"""Replacements by `mx run` for expressions that Python 2 or an older NumPy computed differently.

Nothing here imports NumPy: a program that has not imported it has no arrays either.
"""

from __future__ import annotations

import builtins
import functools
import re
import sys
from numbers import Integral
from operator import itruediv, truediv
from typing import Any, NamedTuple

MAX_WATCHED_ELEMENTS = 10_000  # of an array whose quotients are looked at


class Place(NamedTuple):
    """A line of the program."""

    file: str
    line: int


quotients: dict[Place, str] = {}  # inexact integer divisions, by line
conversions: dict[Place, tuple[str, str]] = {}  # of arrays: call and its replacement


def clear() -> None:
    """Forget what earlier programs did."""
    quotients.clear()
    conversions.clear()


def _caller() -> Place:
    frame = sys._getframe(2)
    return Place(frame.f_code.co_filename, frame.f_lineno)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | Integral) or _is_integer_array(value)


def _is_integer_array(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "iu"


def _is_exact(a: Any, b: Any) -> bool:
    if max(getattr(a, "size", 1), getattr(b, "size", 1)) > MAX_WATCHED_ELEMENTS:
        return True
    rest = a % b
    return not (rest.any() if hasattr(rest, "any") else rest)


# -- divisions -------------------------------------------------------------------------------------


def divide(a: Any, b: Any, function: Any = truediv) -> Any:
    """Return ``a / b`` as Python 2 computed it, or with `itruediv` what ``a /= b`` assigned.

    >>> divide(-7, 2), divide(7, 2.0)
    (-4, 3.5)
    """
    return a // b if _is_integer(a) and _is_integer(b) else function(a, b)


def watch_division(a: Any, b: Any, function: Any = truediv) -> Any:
    """Return ``a / b``; record the line if Python 2 would have truncated the quotient."""
    is_written = function is itruediv and _is_integer_array(a)
    if _is_integer(a) and _is_integer(b) and not is_written:
        _watch(a, b, _caller())
    return function(a, b)


def _watch(a: Any, b: Any, place: Place) -> None:
    if place not in quotients and not _is_exact(a, b):
        quotients[place] = _describe_quotient(a, b)


def _describe_quotient(a: Any, b: Any) -> str:
    if hasattr(a, "shape") or hasattr(b, "shape"):
        return "integers of an array were divided; Python 2 cut the quotients"
    return f"{a} / {b} is {a / b:.6g}; Python 2 gave {a // b}"


# -- arrays of one element as numbers --------------------------------------------------------------


def _as_number(value: Any) -> Any:
    """Return the only element of an array, or None if the value is not such an array."""
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray) and value.size == 1:
        return value.item()
    return None


def to_number(name: str, value: Any) -> Any:
    """Call ``int`` and its like on an array of one element too, as NumPy before 2.4 did."""
    function = getattr(builtins, name)
    try:
        return function(value)
    except TypeError:
        number = _as_number(value)
        if number is None:
            raise
    conversions[_caller()] = (f"{name}(array)", "array.item()")
    return function(number)


def call_math(function: Any, *args: Any) -> Any:
    """Call a function of `math`."""
    try:
        return function(*args)
    except TypeError:
        numbers = [_as_number(value) for value in args]
        if all(number is None for number in numbers):
            raise
    conversions[_caller()] = (f"math.{function.__name__}(array)", "array.item()")
    return function(*(a if n is None else n for a, n in zip(args, numbers, strict=True)))


def to_list(function: str, value: Any) -> Any:
    """Convert a result to a list, because this function returned a list in Python 2."""
    if isinstance(value, list):
        return value
    conversions[_caller()] = (f"{function}(...)", f"list({function}(...))")
    return builtins.list(value)


def to_next(iterator: Any) -> Any:
    """Return the next item of an iterator of Python 2 or 3."""
    if hasattr(iterator, "next"):  # an iterator class of the program, or a DataIter
        return iterator.next()
    conversions[_caller()] = ("x.next()", "next(x)")
    return next(iterator)


def to_key(compare: Any) -> Any:
    """Return the key by which Python 3 sorts as a comparison says."""
    conversions[_caller()] = ("sorted(x, f)", "sorted(x, key=functools.cmp_to_key(f))")
    return functools.cmp_to_key(compare)


def format_text(text: Any, values: Any) -> Any:
    """Return ``text % values``."""
    try:
        return text % values
    except TypeError:
        parts = values if isinstance(values, tuple) else (values,)
    kinds = [kind for kind in re.findall(r"%[^a-zA-Z%]*([a-zA-Z%])", text) if kind != "%"]
    numbers = [
        None if kind in "rsa" else _as_number(part)
        for kind, part in zip(kinds, parts, strict=False)
    ]
    if len(kinds) != len(parts) or all(number is None for number in numbers):
        return text % values  # raises the same error again
    conversions[_caller()] = ("'%f' % array", "array.item()")
    return text % tuple(p if n is None else n for p, n in zip(parts, numbers, strict=True))


def store(value: Any, target: Any, key: Any) -> None:
    """Do ``target[key] = value``."""
    try:
        target[key] = value
        return
    except ValueError:
        number = _as_number(value)
        if number is None or not hasattr(target, "dtype"):
            raise
    conversions[_caller()] = ("x[i] = array", "array.item()")
    target[key] = number
