"""Typed operator attributes and their string form in MXNet.

An attribute is a keyword-only parameter of an operator; its annotation is its type. Values are
Python objects, or strings in model files; both are parsed to the same values.
"""

from __future__ import annotations

import ast
import math
import types
import typing
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple, Union

import numpy as np
import torch

from .. import dtypes
from ..error import AttributeConversionError, DTypeError

# How an operator spells its attribute types.
Shape = tuple[int, ...]
Floats = tuple[float, ...]
Pairs = tuple[tuple[int, ...], ...]
Count = Annotated[int, "non-negative"]
Positive = Annotated[int, "positive"]
PositiveCount = Annotated[int, "non-negative", "positive"]
ArrayCount = Annotated[int, "number of arrays"]
Fraction = Annotated[float, "from 0 to 1"]
DType = torch.dtype
FloatDType = Annotated[torch.dtype, "floating point"]
NumberDType = Annotated[torch.dtype, "not bool"]
IntegerDType = Annotated[torch.dtype, "int32 or int64"]

MAX_ARRAYS = 65536  # maximum number of inputs or outputs of an operator


class AttributeType(NamedTuple):
    """A type of attributes: its name in messages and its parser."""

    label: str
    parse: Callable[[Any], Any]
    choices: tuple[str, ...] = ()


class _Refused(Exception):
    """Raised if the value is not of this type; the caller adds operator and attribute."""


class _OutOfRange(_Refused):
    """Raised if the value is out of range; the text is the requirement."""


def _plain(value: Any) -> Any:
    """Return NumPy scalars as Python numbers."""
    return value.item() if isinstance(value, np.generic) else value


def _evaluate(text: str) -> Any:
    return ast.literal_eval(text.strip())


_shape = lru_cache(4096)(_evaluate)  # a network has hundreds of parameters, but few shapes


def _literal(text: str) -> Any:
    """Parse a number, tuple or constant without running code."""
    if len(text) > 100_000:
        raise _Refused
    try:
        return _shape(text) if text[:1] == "(" and len(text) < 100 else _evaluate(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        raise _Refused from None


def parse_int(value: Any) -> int:
    """Accept 3, '3', '3L', 3.0 (whole), True."""
    value = _plain(value)
    if isinstance(value, str):
        value = _literal(value.strip().rstrip("L"))
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int):
        raise _Refused
    if not -(2**63) <= value < 2**63:
        raise _OutOfRange("fit into 64 bits")
    return int(value)


def parse_array_count(value: Any) -> int:
    """Accept a number of arrays, limited to save memory."""
    number = parse_positive(value)
    if number > MAX_ARRAYS:
        raise _OutOfRange(f"be smaller equal to {MAX_ARRAYS}")
    return number


def parse_count(value: Any) -> int:
    """Accept an integer that is not negative."""
    number = parse_int(value)
    if number < 0:
        raise _Refused
    return number


def parse_positive(value: Any) -> int:
    """Accept an integer of at least 1."""
    number = parse_int(value)
    if number < 1:
        raise _OutOfRange("be greater equal to 1")
    return number


def parse_fraction(value: Any) -> float:
    """Accept a number from 0 to 1."""
    number = parse_float(value)
    if not 0 <= number <= 1:
        raise _OutOfRange("be in [0, 1]")
    return number


def parse_float(value: Any) -> float:
    """Accept any real number or its text, 'inf' and 'nan' included."""
    value = _plain(value)
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value.strip().rstrip("fF") if "nf" not in value.lower() else value)
        except ValueError:
            raise _Refused from None
    raise _Refused


_TRUTH = {"true": True, "1": True, "false": False, "0": False}


def parse_bool(value: Any) -> bool:
    """Accept True, 1, 'True', 'true', '1' and their opposites."""
    value = _plain(value)
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.strip().lower() in _TRUTH:
        return _TRUTH[value.strip().lower()]
    raise _Refused


def parse_string(value: Any) -> str:
    """Accept a string; other values are converted to str."""
    return value if isinstance(value, str) else str(_plain(value))


def _parse_sequence(value: Any, item: Callable[[Any], Any]) -> tuple:
    value = _plain(value)
    if isinstance(value, str):
        text = value.strip().replace("L", "")
        value = _literal(text) if text not in ("", "None") else ()
    if isinstance(value, int | float):
        value = (value,)
    if isinstance(value, np.ndarray | torch.Size):
        value = tuple(value)
    if not isinstance(value, tuple | list):
        raise _Refused
    return tuple(item(v) for v in value)


def parse_shape(value: Any) -> Shape:
    """Accept (3, 3), [3, 3], 3 and their strings."""
    return _parse_sequence(value, parse_int)


def _is_shape(kind: AttributeType) -> bool:
    return kind.parse in (parse_shape, parse_bounds)


def _parse_bound(value: Any) -> int | None:
    return None if value is None or value == "None" else parse_int(value)


def parse_bounds(value: Any) -> tuple[int | None, ...]:
    """Accept a shape in which None means 'not limited', as in slices."""
    return _parse_sequence(value, _parse_bound)


def parse_floats(value: Any) -> Floats:
    """Accept one or several real numbers."""
    return _parse_sequence(value, parse_float)


def parse_pairs(value: Any) -> Pairs:
    """Accept ((1, 2), (0, 1)), one pair, and their strings."""
    if isinstance(value, str):
        value = _literal(value.strip().replace("L", ""))
    if isinstance(value, tuple | list) and value and not isinstance(value[0], tuple | list):
        value = (value,)
    return _parse_sequence(value, parse_shape)


class UnknownDType(AttributeConversionError, DTypeError):
    """Raised for an unknown or unsupported data type."""


def parse_dtype(value: Any) -> torch.dtype:
    """Accept any spelling of a data type; None is float64, as in NumPy."""
    if isinstance(value, torch.dtype):
        return value
    if value is None or value == "None":
        return torch.float64
    try:
        return dtypes.to_torch(value)
    except DTypeError:
        raise _Refused from None


def _dtype_among(accepts: Callable[[torch.dtype], bool]) -> AttributeType:
    def parse(value: Any) -> torch.dtype:
        result = parse_dtype(value)
        if accepts(result):
            return result
        raise _Refused

    names = tuple(name for name, row in dtypes.BY_NAME.items() if accepts(row.torch))
    return AttributeType("data type", parse, names)


def parse_any(value: Any) -> Any:
    """Accept any value, for operators with subgraphs or Python objects."""
    return value


Bounds = tuple[int | None, ...]

_SIMPLE = {
    int: AttributeType("int", parse_int),
    float: AttributeType("float", parse_float),
    bool: AttributeType("boolean", parse_bool),
    str: AttributeType("string", parse_string),
    Shape: AttributeType("Shape(tuple)", parse_shape),
    Floats: AttributeType("tuple of <float>", parse_floats),
    Pairs: AttributeType("tuple of <Shape(tuple)>", parse_pairs),
    Bounds: AttributeType("Shape(tuple)", parse_bounds),
    Count: AttributeType("int (non-negative)", parse_count),
    Positive: AttributeType("int", parse_positive),
    PositiveCount: AttributeType("int (non-negative)", parse_positive),
    ArrayCount: AttributeType("int", parse_array_count),
    Fraction: AttributeType("float", parse_fraction),
    DType: AttributeType("data type", parse_dtype, tuple(dtypes.BY_NAME)),
    FloatDType: _dtype_among(lambda dtype: dtype.is_floating_point),
    NumberDType: _dtype_among(lambda dtype: dtype is not torch.bool),
    IntegerDType: _dtype_among(lambda dtype: dtype in (torch.int32, torch.int64)),
    Any: AttributeType("any", parse_any),
}


def _choice(values: tuple[str, ...]) -> AttributeType:
    def parse(value: Any) -> str:
        if value in values:
            return value
        raise _Refused

    label = "{" + ", ".join(repr(v) for v in sorted(values)) + "}"
    return AttributeType(label, parse, values)


def _optional(inner: AttributeType) -> AttributeType:
    def parse(value: Any) -> Any:
        is_none = value is None or (isinstance(value, str) and value == "None")
        return None if is_none else inner.parse(value)

    return AttributeType(f"{inner.label} or None", parse, inner.choices)


def attribute_type(annotation: Any) -> AttributeType:
    """Return the attribute type of an annotation.

    >>> attribute_type(Shape).parse("(3, 3)")
    (3, 3)
    """
    simple = _SIMPLE.get(annotation)
    if simple is not None:
        return simple
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return _choice(typing.get_args(annotation))
    if origin in (Union, types.UnionType):
        inner = [a for a in typing.get_args(annotation) if a is not type(None)]
        if len(inner) == 1:
            return _optional(attribute_type(inner[0]))
    raise TypeError(f"an attribute cannot be of type {annotation!r}")


class Attribute(NamedTuple):
    """An attribute of an operator."""

    name: str
    type: AttributeType
    default: Any
    required: bool

    def parse(self, value: Any, operator: str) -> Any:
        """Parse a value; raise for invalid ones."""
        if value is None and not self.required and _is_shape(self.type):
            return ()  # as MXNet, which reads the text, takes it
        try:
            return self.type.parse(value)
        except _OutOfRange as limits:
            raise AttributeConversionError(
                f"value {to_string(value)} for Parameter {self.name} should {limits}, "
                f"in operator {operator}."
            ) from None
        except (_Refused, OverflowError):
            pass
        if self.type.choices:
            is_dtype = self.type.label.startswith("data type")
            valid = ", ".join(self.type.choices) if is_dtype else self.type.label
            raise (UnknownDType if is_dtype else AttributeConversionError)(
                f"Invalid Input: {to_string(value)!r}, valid values are: {valid}, "
                f"in operator {operator}, argument {self.name!r}."
            )
        raise AttributeConversionError(
            f"Invalid Parameter format for {self.name} expect {self.type.label} "
            f"but value={to_string(value)!r}, in operator {operator}."
        )


_PRINTED = frozenset({int, bool, type(None)})  # most values: as Python prints them
# For isinstance, which is several times slower with a new union type.
_DTYPES, _NUMBERS = (torch.dtype, np.dtype), (np.generic, float, int)


def to_string(value: Any) -> str:
    """Return the string of an attribute value in MXNet's model files.

    >>> to_string((3, np.int64(3))), to_string(True), to_string(np.float32), to_string(0.5)
    ('(3, 3)', 'True', 'float32', '0.5')
    """
    if isinstance(value, str):
        return value
    if type(value) in _PRINTED or (type(value) is tuple and _PRINTED.issuperset(map(type, value))):
        return str(value)
    value = _plain(value)
    if isinstance(value, _DTYPES) or (isinstance(value, type) and issubclass(value, _NUMBERS)):
        return dtypes.to_name(value)
    if isinstance(value, np.ndarray):
        value = tuple(value.tolist())
    if isinstance(value, tuple | list):
        items = [_plain(v) for v in value]
        # MXNet keeps the user's brackets.
        return str(items) if isinstance(value, list) else str(tuple(items))
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return str(value)


def is_hidden(name: str) -> bool:
    """Return whether an attribute is hidden, such as ``__layout__``, and not used by operators.

    >>> is_hidden("__layout__"), is_hidden("axis")
    (True, False)
    """
    return name.startswith("__") and name.endswith("__")
