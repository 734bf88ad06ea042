"""Generates `mx.np` and `mx.sym.np` from the operator registry and from the composites.

A composite is a function of several operators, or of one operator with a different signature. It is
written once, with the operator namespace ``F`` as its first parameter, which is bound to arrays or
symbols.
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
_IGNORED = "Accepted for compatibility with NumPy; only the default is supported."

# Descriptions of parameters with the same meaning in all functions.
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
    "x2": "The right operand; both operands broadcast.",
    "b": "The second array.",
    "arrays": "The arrays, in a list or a tuple.",
    "tup": "The arrays, in a list or a tuple.",
    "seq": "The arrays, in a list or a tuple; their other axes have the same sizes.",
    "*arys": "The arrays.",
    "*args": "The arrays.",
    "out": "Array to write the result into, with the shape and data type of the result.",
    "prototype": "Array that determines the shape and data type of the result.",
    "condition": "Condition; nonzero elements are true.",
    "y": "Values if the condition is false.",
    "weights": "Weight of each element.",
    "values": "The values to insert; they broadcast.",
    "indices": "The indices.",
    # axes and order
    "axis": "Axis or axes; negative values count from the last, None means all.",
    "axes": "The axes, in order.",
    "axis1": "First of the two axes.",
    "axis2": "Second of the two axes.",
    "keepdims": "Whether to keep reduced axes, with size 1.",
    "source": "Positions of the axes to move.",
    "destination": "New positions of these axes.",
    "start": "First number.",
    "stop": "Where to stop.",
    "step": "Distance between neighboring values; may be negative.",
    "num": "Number of values.",
    "endpoint": "Whether to include `stop`.",
    "retstep": "Whether to also return the distance between values.",
    "base": "Base of the powers.",
    "order": "Memory order; only ``'C'`` (row-major).",
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
    "*size": "Sizes of the result; without any, a single number.",
    "dimensions": "Shape of the indexed array.",
    "n": "How many.",
    "N": "Number of rows.",
    "M": "Number of columns, or of points.",
    "k": "Index of the diagonal: 0 is the main one, positive ones above it, negative ones below.",
    "offset": "Index of the diagonal: 0 is the main one, positive ones are above it.",
    # numbers
    "fill_value": "Value of all elements.",
    "decimals": "Number of decimals; a negative one rounds to tens, hundreds and so on.",
    "a_min": "Lower limit, or None.",
    "a_max": "Upper limit, or None.",
    "initial": "Initial value of the reduction.",
    "ddof": "Delta degrees of freedom: the divisor is the number of elements minus it.",
    "q": "Numbers to compute; those of an array become the first axis of the result.",
    "interpolation": "Interpolation between two elements, such as ``'linear'`` or ``'lower'``.",
    "copy": "Whether to return a new array; otherwise the array is changed in place.",
    "nan": "Number that replaces NaN.",
    "posinf": "Number that replaces infinity; by default the largest of the data type.",
    "neginf": "Number that replaces minus infinity; by default the smallest of the data type.",
    "minlength": "Minimum length of the result.",
    "repeats": "Number of repetitions of each element.",
    "reps": "Number of repetitions along each axis; extra ones add axes in front.",
    "shift": "Number of positions to shift, for each axis.",
    "mode": "Mode of padding, or of indices out of range.",
    "pad_width": "Number of elements before and after each axis: ``((before, after), ...)``.",
    "returned": "Whether to also return the sum of the weights.",
    "return_index": "Whether to return the first index of each unique element.",
    "return_inverse": "Whether to return the index of each element among the unique ones.",
    "return_counts": "Whether to return the count of each unique element.",
    "indices_or_sections": "Number of equal parts, or the start indices of the parts.",
    "obj": "An index, a slice, or an array of indices.",
    "prepend": "Values to prepend.",
    "append": "Values to append.",
    "to_begin": "Values to prepend to the differences.",
    "to_end": "Values to append to the differences.",
    "bins": "Number of equal bins, or their edges.",
    "range": "Lower and upper limit of the bins; by default the array's minimum and maximum.",
    "normed": _IGNORED,
    "density": _IGNORED,
    "p": "The coefficients, from the highest power down.",
    "msg": "Message of the error.",
    "reverse": "Whether to match sizes from the right.",
    # linear algebra
    "ord": "Order of the norm: None is Euclidean, ``inf`` the largest, ``'fro'`` Frobenius's.",
    "UPLO": "Triangle to use: ``'L'`` for the lower, ``'U'`` for the upper one.",
    "rcond": "Singular values below this fraction of the largest are treated as 0.",
    "hermitian": "Whether the matrix is symmetric, which is faster.",
    "ind": "Number of leading axes that become the last axes of the inverse.",
    "*operands": "Subscripts such as ``'ij,jk->ik'``, then the arrays.",
    # distributions
    "loc": "Location of the distribution: a number or an array.",
    "scale": "Scale of the distribution: a number or an array.",
    "low": "Lower bound: a number or an array.",
    "high": "Upper bound, excluded.",
    "mean": "Mean of the (underlying) normal distribution.",
    "sigma": "Standard deviation of the underlying normal distribution.",
    "cov": "Covariance matrix.",
    "df": "Degrees of freedom.",
    "pvals": "Probabilities of the outcomes.",
    "replace": "Whether to sample with replacement.",
}
NUMBERS = (int, float, bool, onp.generic)
Maker = Callable[[], Callable]  # creates functions on first access


class NumpyNamespace(OperatorNamespace):
    """``F`` of NumPy's composites, with the conversion of numbers to operands.

    Parameters
    ----------
    number
        Function that returns the attributes for a number as an operand.
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
        """Return the context attribute; in graphs it defaults to the current context."""
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
        f"{name}: type {kinds} not supported. Use an mx.np.ndarray or a number. "
        "Convert NumPy arrays with mx.np.array(x), and legacy arrays with x.as_np_ndarray()."
    )


def make_unary(F: NumpyNamespace, op: Op, name: str) -> Callable:
    """Create the universal function of one array for an operator."""
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
    """Create a binary universal function from an operator. Either operand may be a number."""
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
_docstrings: dict[Op, str] = {}  # same for arrays and symbols


_MIRRORED = {"less": "greater", "greater": "less"}


def array_form(name: str) -> str:
    """Return the operator on two arrays of a binary function."""
    return f"_npi_{name}"


def scalar_form(name: str) -> str:
    """Return the operator on an array and a number of a binary function."""
    return f"_npi_{name}_scalar"


def reversed_form(name: str) -> str:
    """Return the operator on a number and an array: reversed, mirrored, or the same.

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
    """Return factories of the universal functions, by public name."""
    makers = {}
    for registered in registry.names():
        op, name = registry.get(registered), registered.removeprefix("_npi_")
        if is_binary(registered, op):
            makers[name] = partial(make_binary, F, op, name)
        elif is_unary(registered, op):
            makers[name] = partial(make_unary, F, op, name)
    return makers
