"""Generates `mx.np` and `mx.sym.np` from the operator registry and from the composites.

A composite is a function that does more than call one operator, or calls it under another
signature. It is written once, with the operator namespace ``F`` as its first parameter: eager
arrays and symbols differ only in the namespace that is bound to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from numbers import Number
from types import FunctionType, ModuleType
from typing import Any

import numpy as onp

from ...context import current_context
from ...error import InvalidType
from ...ops import registry
from ...ops.declare import Op
from ...ops.documentation import complete
from ...runtime.composites.namespace import OperatorNamespace
from ...util import check_ufunc_keywords

_CONTEXT = "Device of the result; by default the current one."
_IGNORED = "Accepted as in NumPy; only the default."

# What parameters mean, where all functions agree.
GLOSSARY = {
    # arrays
    "a": "The input array.",
    "x": "The input array, or a number.",
    "m": "The input array.",
    "ar": "The input array.",
    "arr": "The input array.",
    "ary": "The input array.",
    "array": "The input array.",
    "A": "The input array.",
    "x1": "The left operand: an array or a number.",
    "x2": "The right operand; the two broadcast.",
    "b": "The second array.",
    "arrays": "The arrays, in a list or a tuple.",
    "tup": "The arrays, in a list or a tuple.",
    "seq": "The arrays, in a list or a tuple; they agree in all other axes.",
    "*arys": "The arrays.",
    "*args": "The arrays.",
    "out": "Array that receives the result, of its shape and data type.",
    "prototype": "Array whose shape and data type the result has.",
    "condition": "Where to take from `x`: elements that are not 0 are true.",
    "y": "Taken where the condition is false.",
    "weights": "Weight of each element.",
    "values": "The values to put in; they broadcast.",
    "indices": "The indices.",
    # axes and order
    "axis": "Axis or axes to work along; negative ones count from the last, None means all.",
    "axes": "The axes, in order.",
    "axis1": "First of the two axes.",
    "axis2": "Second of the two axes.",
    "keepdims": "Whether reduced axes stay, with size 1.",
    "source": "Where the axes are.",
    "destination": "Where to move them.",
    "start": "First number.",
    "stop": "Where to stop.",
    "step": "Distance between neighboring numbers; it may be negative.",
    "num": "How many numbers to make.",
    "endpoint": "Whether `stop` is the last number; if not, it is left out.",
    "retstep": "Whether to return the distance between neighbors too.",
    "base": "Base of the powers.",
    "order": "Order in memory; only ``'C'``, the last axis fastest.",
    "kind": _IGNORED,
    "max_work": _IGNORED,
    "subok": _IGNORED,
    "overwrite_input": _IGNORED,
    "check_valid": _IGNORED,
    "tol": _IGNORED,
    # shapes and types
    "shape": "Shape of the result: a number or a tuple.",
    "newshape": "The new shape: a number or a tuple; one size may be -1.",
    "new_shape": "The new shape: a number or a tuple.",
    "dtype": "Data type of the result; by default float32, or that of the input array.",
    "ctx": _CONTEXT,
    "size": "Shape of the samples; by default that of the parameters.",
    "*size": "Sizes of the result, one by one; none means one number.",
    "dimensions": "Shape of the array that the indices are for.",
    "n": "How many.",
    "N": "Number of rows.",
    "M": "Number of columns, or of points.",
    "k": "Index of the diagonal: 0 is the main one, positive ones above it, negative ones below.",
    "offset": "Index of the diagonal: 0 is the main one, positive ones are above it.",
    # numbers
    "fill_value": "The number to fill with.",
    "decimals": "Number of decimals; a negative one rounds to tens, hundreds and so on.",
    "a_min": "Lower limit, or None.",
    "a_max": "Upper limit, or None.",
    "initial": "Number that the reduction starts with.",
    "ddof": "How much the divisor is less than the number of elements.",
    "q": "What to compute: numbers, each of which becomes a slice of the result's first axis.",
    "interpolation": "What to take between two elements, such as ``'linear'`` or ``'lower'``.",
    "copy": "Whether to make a new array; with False the array itself is changed.",
    "nan": "Number that replaces NaN.",
    "posinf": "Number that replaces infinity; by default the largest of the data type.",
    "neginf": "Number that replaces minus infinity; by default the smallest of the data type.",
    "minlength": "Least length of the result.",
    "repeats": "How many times each element is repeated.",
    "reps": "Number of copies along each axis; extra ones make new axes in front.",
    "shift": "How many places to move, for each axis.",
    "mode": "What to do at the edges: how to pad, or what indices out of range mean.",
    "pad_width": "Number of elements before and after each axis: ``((before, after), ...)``.",
    "returned": "Whether to return the sum of the weights too.",
    "return_index": "Whether to return where each element first occurs.",
    "return_inverse": "Whether to return the index, among the distinct ones, of each element.",
    "return_counts": "Whether to return how often each element occurs.",
    "indices_or_sections": "Number of equal parts, or the indices that the parts begin at.",
    "obj": "An index, a slice, or an array of indices.",
    "prepend": "Values to put in front first.",
    "append": "Values to put at the end first.",
    "to_begin": "Values to put in front of the differences.",
    "to_end": "Values to put at the end of the differences.",
    "bins": "Number of equal bins, or their edges.",
    "range": "Smallest and largest number that the bins cover; by default those of the array.",
    "normed": _IGNORED,
    "density": _IGNORED,
    "p": "The coefficients, from the highest power down.",
    "msg": "Message of the error.",
    "reverse": "Whether to match sizes from the last axis on.",
    # linear algebra
    "ord": "Order of the norm: None is Euclidean, ``inf`` the largest, ``'fro'`` Frobenius's.",
    "UPLO": "Triangle that is read: ``'L'`` for the lower one, ``'U'`` for the upper one.",
    "rcond": "Singular values below this fraction of the largest count as 0.",
    "hermitian": "Whether the matrix is symmetric, which is faster.",
    "ind": "How many of the first axes belong to the inverse's last.",
    "*operands": "Letters for the axes, such as ``'ij,jk->ik'``, then the arrays.",
    # distributions
    "loc": "Location of the distribution: a number or an array.",
    "scale": "Scale of the distribution: a number or an array.",
    "low": "Lower bound: a number or an array.",
    "high": "Upper bound, which is left out.",
    "mean": "Mean of the (underlying) normal distribution.",
    "sigma": "Standard deviation of the underlying normal distribution.",
    "cov": "Covariance matrix.",
    "df": "Degrees of freedom.",
    "pvals": "Probabilities of the outcomes.",
    "replace": "Whether an element may be chosen again.",
}
NUMBERS = (int, float, bool, onp.generic)
Maker = Callable[[], Callable]  # makes a function on first access


class NumpyNamespace(OperatorNamespace):
    """``F`` of NumPy's composites; it also knows how a number becomes an operand.

    Parameters
    ----------
    number
        Returns the attributes for a number as an operand.
    """

    def __init__(
        self,
        array_class: type,
        make: Callable[[Op, str], Callable],
        number: Callable[[Any], dict[str, Any]],
        is_symbolic: bool = False,
    ) -> None:
        super().__init__(array_class, make, is_symbolic)
        self.number = number

    def context_text(self, ctx: Any) -> str:
        """Return the attribute that names a context; graphs name the current one too."""
        if ctx is None:
            return str(current_context()) if self.is_symbolic else ""
        return str(ctx)

    def require_array(self, name: str, value: Any) -> None:
        """Raise for values that are not arrays of the namespace."""
        if not self.is_array(value):
            raise InvalidType(
                f"Argument {name} must have {self.array_class.__name__} type, but got {value!r} of "
                f"{type(value).__name__}. Wrap it: mx.np.array(value)."
            )


def is_number(value: Any) -> bool:
    """Return whether a value is a Python or NumPy number."""
    return isinstance(value, Number)


def check_order(order: str) -> None:
    """Raise for memory layouts other than row-major."""
    if order != "C":
        raise NotImplementedError(f"order={order!r} is not supported; arrays are row-major ('C').")


def composites_of(modules: Iterable[ModuleType]) -> dict[str, Callable]:
    """Return the public composites of some modules by name."""
    return {
        name: function
        for module in modules
        for name, function in vars(module).items()
        if isinstance(function, FunctionType)
        and function.__module__ == module.__name__
        and not name.startswith("_")
    }


# -- universal functions ------------------------------------------------------------------------


def _refuse(name: str, *operands: Any) -> TypeError:
    kinds = ", ".join(str(type(x)) for x in operands)
    return TypeError(
        f"{name}: type {kinds} not supported. Use mx.np.ndarray (mx.np.array(x) of NumPy's, "
        "x.as_np_ndarray() of a legacy array) or a number."
    )


def make_unary(F: NumpyNamespace, op: Op, name: str) -> Callable:
    """Return the universal function of one array that an operator implements."""
    function = getattr(F, op.name)
    of_number = getattr(onp, name, None)

    cls = F.array_class

    def unary(x: Any, out: Any = None, **kwargs: Any) -> Any:
        if x.__class__ is cls and out is None and not kwargs:
            return function(x)
        if kwargs:
            check_ufunc_keywords(name, kwargs)
        if F.is_array(x):
            return function(x) if out is None else function(x, out=out)
        if isinstance(x, NUMBERS) and of_number is not None:
            return of_number(x)
        raise _refuse(name, x)

    return _set_name(unary, name, op, _UNARY)


def make_binary(F: NumpyNamespace, op: Op, name: str) -> Callable:
    """Return the universal function of two arrays, either of which may be a number."""
    function = getattr(F, op.name)
    with_number = getattr(F, scalar_form(name))
    from_number = getattr(F, reversed_form(name))
    of_numbers = getattr(onp, name)

    cls = F.array_class

    def binary(x1: Any, x2: Any, out: Any = None, **kwargs: Any) -> Any:
        if x1.__class__ is cls and x2.__class__ is cls and out is None and not kwargs:
            return function(x1, x2)
        if kwargs:
            check_ufunc_keywords(name, kwargs)
        rest = {} if out is None else {"out": out}
        if F.is_array(x1):
            if F.is_array(x2):
                return function(x1, x2, **rest)
            if isinstance(x2, NUMBERS):
                return with_number(x1, **F.number(x2), **rest)
        elif isinstance(x1, NUMBERS):
            if F.is_array(x2):
                return from_number(x2, **F.number(x1), **rest)
            if isinstance(x2, NUMBERS):
                return of_numbers(x1, x2)
        raise _refuse(name, x1, x2)

    return _set_name(binary, name, op, _BINARY)


def _set_name(
    function: Callable, name: str, op: Op, parameters: tuple[inspect.Parameter, ...]
) -> Callable:
    function.__name__ = function.__qualname__ = name
    if op not in _docstrings:
        _docstrings[op] = complete(op.function.__doc__ or name, parameters, GLOSSARY)
    function.__doc__ = _docstrings[op]
    return function


def _parameter(name: str, **default: None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, **default)


_UNARY = (_parameter("x"), _parameter("out", default=None))
_BINARY = (_parameter("x1"), _parameter("x2"), _parameter("out", default=None))
_docstrings: dict[Op, str] = {}  # arrays and symbols have the same


_MIRRORED = {"less": "greater", "greater": "less"}


def array_form(name: str) -> str:
    """Return the operator of two arrays that a binary function calls."""
    return f"_npi_{name}"


def scalar_form(name: str) -> str:
    """Return the operator of an array and a number that belongs to a binary function."""
    return f"_npi_{name}_scalar"


def reversed_form(name: str) -> str:
    """Return the operator of a number and an array: reversed, mirrored, or the same.

    >>> reversed_form("subtract"), reversed_form("less"), reversed_form("add")
    ('_npi_rsubtract_scalar', '_npi_greater_scalar', '_npi_add_scalar')
    """
    turned = f"_npi_r{name}_scalar"
    if registry.find(turned) is not None:
        return turned
    first, _, rest = name.partition("_")
    mirrored = _MIRRORED.get(first, first) + (f"_{rest}" if rest else "")
    return scalar_form(mirrored)


def is_binary(name: str, op: Op) -> bool:
    """Return whether a registered name is a function of two arrays with a scalar form."""
    return (
        name.startswith("_npi_")
        and len(op.inputs) == 2
        and not op.attributes
        and registry.find(f"{name}_scalar") is not None
    )


def is_unary(name: str, op: Op) -> bool:
    """Return whether a registered name is a universal function of one array."""
    return (
        name.startswith("_npi_")
        and [i.name for i in op.inputs] == ["x"]
        and not op.attributes
        and op.shape_rule is not None
    )


def universal_functions(F: NumpyNamespace) -> dict[str, Maker]:
    """Return factories of the universal functions that operators implement, by public names."""
    makers = {}
    for registered in registry.names():
        op, name = registry.get(registered), registered.removeprefix("_npi_")
        if is_binary(registered, op):
            makers[name] = partial(make_binary, F, op, name)
        elif is_unary(registered, op):
            makers[name] = partial(make_unary, F, op, name)
    return makers
