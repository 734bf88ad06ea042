"""Functions computed by NumPy: arguments are copied to the host, and results back.

They have no gradient, so inside `autograd.record()` they raise an error.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as onp

from ..context import Context
from ..ops.documentation import complete
from ..runtime.recording import state
from .codegen.functions import GLOSSARY
from .codegen.namespaces import fill
from .multiarray import array, ndarray


def _removal_error(name: str) -> str:
    head = "Traceback (most recent call last):\n    ..."
    return f"{head}\nRuntimeError: NumPy removed {name} in version 1.20..."


# fmt: off
# An example for each function: the call in `mx.np`, and its result, with ``x = [1, 2, 3]`` and ``m
# = [[1, 2], [3, 4]]``.
EXAMPLES = {
    "allclose": ("allclose(x, x)", "True"),
    "apply_along_axis": ("apply_along_axis(lambda row: row.max(), 1, m)", "array([2., 4.])"),
    "apply_over_axes": ("apply_over_axes(np.sum, m, [0, 1])", "array([[10.]])"),
    "argpartition": ("argpartition(x, 1)", "array([0, 1, 2], dtype=int64)"),
    "argwhere": ("argwhere(x > 1)", "array([[1],\n       [2]], dtype=int64)"),
    "array_equal": ("array_equal(x, x)", "True"),
    "array_equiv": ("array_equiv(x, x)", "True"),
    "choose": ('choose(mx.np.array([0, 1], dtype="int64"), [x[:2], x[1:]])', "array([1., 3.])"),
    "compress": ("compress([True, False, True], x)", "array([1., 3.])"),
    "corrcoef": ("corrcoef(m).shape", "(2, 2)"),
    "correlate": ("correlate(x, x)", "array([14.])"),
    "count_nonzero": ("count_nonzero(m > 1, axis=0)", "array([1, 2], dtype=int64)"),
    "cov": ("cov(m)", "array([[0.5, 0.5],\n       [0.5, 0.5]], dtype=float64)"),
    "digitize": ("digitize(x, mx.np.array([0, 2]))", "array([1, 2, 2], dtype=int64)"),
    "divmod": ("divmod(x, 2)", "(array([0., 1., 1.]), array([1., 0., 1.]))"),
    "extract": ("extract(x > 1, x)", "array([2., 3.])"),
    "flatnonzero": ("flatnonzero(x > 1)", "array([1, 2], dtype=int64)"),
    "float_power": ("float_power(x, 2)", "array([1., 4., 9.], dtype=float64)"),
    "frexp": ("frexp(x)", "(array([0.5 , 0.5 , 0.75]), array([1, 2, 2], dtype=int32))"),
    "heaviside": ("heaviside(x, 0.5)", "array([1., 1., 1.])"),
    "histogram2d": (
        "histogram2d(x, x, bins=1)",
        "(array([[3.]], dtype=float64), array([1., 3.]), array([1., 3.]))",
    ),
    "histogram_bin_edges": ("histogram_bin_edges(x, bins=2)", "array([1., 2., 3.])"),
    "histogramdd": ("histogramdd([x], bins=1)[0]", "array([3.], dtype=float64)"),
    "i0": ("i0(mx.np.zeros(1)).round(3)", "array([1.])"),
    "in1d": ("in1d(x, mx.np.array([2]))", "array([False,  True, False])"),
    "interp": ("interp(2.5, x, x)", "np.float64(2.5)"),
    "intersect1d": ("intersect1d(x, mx.np.array([2, 5]))", "array([2.])"),
    "isclose": ("isclose(x, x)", "array([ True,  True,  True])"),
    "isin": ("isin(x, mx.np.array([2]))", "array([False,  True, False])"),
    "ix_": ("ix_([0], [1])", "(array([[0]], dtype=int64), array([[1]], dtype=int64))"),
    "lexsort": ("lexsort((x,))", "array([0, 1, 2], dtype=int64)"),
    "min_scalar_type": ("min_scalar_type(10)", "dtype('uint8')"),
    "modf": ("modf(mx.np.array([1.5]))", "(array([0.5]), array([1.]))"),
    "msort": ("msort(x)", "array([1., 2., 3.])"),
    "nanargmax": ("nanargmax(x)", "np.int64(2)"),
    "nanargmin": ("nanargmin(x)", "np.int64(0)"),
    "nancumprod": ("nancumprod(x)", "array([1., 2., 6.])"),
    "nancumsum": ("nancumsum(x)", "array([1., 3., 6.])"),
    "nanmax": ("nanmax(x)", "np.float32(3.0)"),
    "nanmedian": ("nanmedian(x)", "np.float32(2.0)"),
    "nanmin": ("nanmin(x)", "np.float32(1.0)"),
    "nanpercentile": ("nanpercentile(x, 50)", "np.float32(2.0)"),
    "nanprod": ("nanprod(x)", "np.float32(6.0)"),
    "nanquantile": ("nanquantile(x, 0.5)", "np.float32(2.0)"),
    "packbits": ('packbits(mx.np.array([1, 0], dtype="bool"))', "array([128], dtype=uint8)"),
    "partition": ("partition(x, 1)", "array([1., 2., 3.])"),
    "piecewise": ("piecewise(x, [x < 2, x >= 2], [-1, 1])", "array([-1.,  1.,  1.])"),
    "poly": ("poly(mx.np.array([1, 2]))", "array([ 1., -3.,  2.])"),
    "polyadd": ("polyadd(x, x)", "array([2., 4., 6.])"),
    "polydiv": ("polydiv(x, mx.np.array([1]))", "(array([1., 2., 3.]), array([0.]))"),
    "polyfit": ("polyfit(x, x, 1).round(3)", "array([1., 0.], dtype=float64)"),
    "polyint": ("polyint(mx.np.array([2, 1]))", "array([1., 1., 0.], dtype=float64)"),
    "polymul": ("polymul(x, mx.np.array([2]))", "array([2., 4., 6.])"),
    "polysub": ("polysub(x, x)", "array([0., 0., 0.])"),
    "positive": ("positive(x)", "array([1., 2., 3.])"),
    "promote_types": ('promote_types("float32", "int8")', "dtype('float32')"),
    "ptp": ("ptp(x)", "np.float32(2.0)"),
    "real": ("real(x)", "array([1., 2., 3.])"),
    "result_type": ('result_type("float32", "int8")', "dtype('float32')"),
    "roots": ("roots(mx.np.array([1, -3, 2]))", "array([2., 1.])"),
    "searchsorted": ("searchsorted(x, 2)", "np.int64(1)"),
    "select": ("select([x > 1], [x])", "array([0., 2., 3.])"),
    "setdiff1d": ("setdiff1d(x, mx.np.array([2]))", "array([1., 3.])"),
    "setxor1d": ("setxor1d(x, mx.np.array([2]))", "array([1., 3.])"),
    "signbit": ("signbit(x)", "array([False, False, False])"),
    "spacing": ("spacing(mx.np.ones(1))", "array([1.1920929e-07])"),
    "take_along_axis": ('take_along_axis(x, mx.np.array([0], dtype="int64"), 0)', "array([1.])"),
    "trapz": ("trapz(x)", "np.float32(4.0)"),
    "tril_indices_from": (
        "tril_indices_from(m)",
        "(array([0, 1, 1], dtype=int64), array([0, 0, 1], dtype=int64))",
    ),
    "trim_zeros": ("trim_zeros(mx.np.array([0, 1, 0]))", "array([1.])"),
    "triu_indices_from": (
        "triu_indices_from(m)",
        "(array([0, 0, 1], dtype=int64), array([0, 1, 1], dtype=int64))",
    ),
    "union1d": ("union1d(x, mx.np.array([5]))", "array([1., 2., 3., 5.])"),
    "unpackbits": (
        'unpackbits(mx.np.array([3], dtype="uint8"))',
        "array([0, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)",
    ),
    "unwrap": ("unwrap(x)", "array([1., 2., 3.])"),
    "vander": (
        "vander(x)",
        "array([[1., 1., 1.],\n       [4., 2., 1.],\n       [9., 3., 1.]], dtype=float64)",
    ),
    "mirr": ("mirr([-1, 2], 0.1, 0.1)", _removal_error("mirr")),
    "npv": ("npv(0.1, [1])", _removal_error("npv")),
    "ppmt": ("ppmt(0.1, 1, 2, 3)", _removal_error("ppmt")),
    "pv": ("pv(0.1, 2, 3)", _removal_error("pv")),
    "rate": ("rate(2, 3, 4, 5)", _removal_error("rate")),
    "linalg.cond": ("linalg.cond(mx.np.eye(2))", "np.float32(1.0)"),
    "linalg.lstsq": ("linalg.lstsq(mx.np.eye(2), mx.np.ones(2), rcond=None)[0]", "array([1., 1.])"),
    "linalg.matrix_power": (
        "linalg.matrix_power(mx.np.eye(2), 3)",
        "array([[1., 0.],\n       [0., 1.]])",
    ),
    "linalg.matrix_rank": ("linalg.matrix_rank(mx.np.eye(2))", "np.int64(2)"),
    "linalg.multi_dot": ("linalg.multi_dot([m, m])", "array([[ 7., 10.],\n       [15., 22.]])"),
    "linalg.qr": ("linalg.qr(mx.np.eye(2))[1].shape", "(2, 2)"),
}
# fmt: on
_ARRAYS = {"x": "[1, 2, 3]", "m": "[[1, 2], [3, 4]]"}


def example_of(name: str) -> str:
    """Return the example section of a function, or an empty string.

    >>> example_of("ptp").splitlines()[2:]
    ['>>> x = mx.np.array([1, 2, 3])', '>>> mx.np.ptp(x)', 'np.float32(2.0)']
    """
    if name not in EXAMPLES:
        return ""
    call, result = EXAMPLES[name]
    words = set(re.findall(r"\b[xm]\b", call.replace("mx.", "")))
    setup = [f">>> {a} = mx.np.array({v})" for a, v in _ARRAYS.items() if a in words]
    return "\n".join(["Examples", "--------", *setup, f">>> mx.np.{call}", result])


_log = logging.getLogger("mxnet.numpy")

# fmt: off
NAMES = (
    "allclose", "apply_along_axis", "apply_over_axes", "argpartition", "argwhere", "array_equal",
    "array_equiv", "choose", "compress", "corrcoef", "correlate", "count_nonzero", "cov",
    "digitize", "divmod", "extract", "flatnonzero", "float_power", "frexp", "heaviside",
    "histogram2d", "histogram_bin_edges", "histogramdd", "i0", "in1d", "interp", "intersect1d",
    "isclose", "isin", "ix_", "lexsort", "min_scalar_type", "mirr", "modf", "msort", "nanargmax",
    "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmedian", "nanmin", "nanpercentile",
    "nanprod", "nanquantile", "npv", "packbits", "partition", "piecewise", "poly",
    "polyadd", "polydiv", "polyfit", "polyint", "polymul", "polysub", "positive", "ppmt",
    "promote_types", "ptp", "pv", "rate", "real", "result_type", "roots", "searchsorted",
    "select", "setdiff1d", "setxor1d", "signbit", "spacing", "take_along_axis", "trapz",
    "tril_indices_from", "trim_zeros", "triu_indices_from", "union1d", "unpackbits", "unwrap",
    "vander",
)
# fmt: on
# They would change a copy on the host only.
IN_PLACE = (
    onp.copyto,
    onp.fill_diagonal,
    onp.place,
    onp.put,
    onp.put_along_axis,
    onp.putmask,
)
_FINANCIAL = ("mirr", "npv", "ppmt", "pv", "rate")


def to_host(value: Any) -> Any:
    """Convert all arrays of `mx.np` in a value to NumPy arrays."""
    if isinstance(value, ndarray):
        return value.asnumpy()
    if isinstance(value, list | tuple):
        return type(value)(to_host(v) for v in value)
    if isinstance(value, dict):
        return {k: to_host(v) for k, v in value.items()}
    return value


def from_host(value: Any, ctx: Context | None) -> Any:
    """Convert all NumPy arrays in a result to arrays of `mx.np`."""
    if isinstance(value, onp.ndarray):
        if value.dtype.kind == "c":
            raise ValueError(f"{value.dtype} is not supported.")
        return array(value, ctx=ctx)
    if isinstance(value, list | tuple):
        values = [from_host(v, ctx) for v in value]
        return type(value)(*values) if hasattr(value, "_fields") else type(value)(values)
    return value


def context_of(value: Any) -> Context | None:
    """Return the context of the first array in nested arguments."""
    if isinstance(value, ndarray):
        return value.context
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return next((ctx for v in value if (ctx := context_of(v)) is not None), None)
    return None


def call_numpy(function: Callable, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Compute a function of arrays of `mx.np` with NumPy, on the host."""
    name = getattr(function, "__name__", str(function))
    ctx = context_of(args) or context_of(kwargs)
    if state.recording and ctx is not None:
        raise ValueError(
            f"Falling back to NumPy operator {name} with autograd active is not supported. Call "
            "it outside of record(), or inside pause()."
        )
    _log.info("np.%s is computed by NumPy on the host.", name)
    if function in IN_PLACE:
        raise TypeError(
            f"numpy.{name} changes its argument in place, which is not supported for mx.np arrays."
        )
    result = function(*to_host(args), **to_host(kwargs))
    if function is onp.count_nonzero and isinstance(result, onp.integer):
        return int(result)  # as in NumPy 1
    return from_host(result, ctx)


def _in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return onp.isin(onp.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def _msort(a: Any) -> Any:
    return onp.sort(a, axis=0)


def _trapz(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    return onp.trapezoid(y, x, dx, axis)


# Keywords that NumPy has renamed, and keywords without effect that it has removed.
_RENAMED = {"interpolation": "method", "normed": "density"}
_DROPPED = {"corrcoef": ("bias", "ddof")}
_OLD_SIGNATURES = ("corrcoef", "histogram2d", "histogramdd", "nanpercentile", "nanquantile")


def _old_keywords(name: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    dropped = _DROPPED.get(name, ())
    return {_RENAMED.get(k, k): v for k, v in kwargs.items() if k not in dropped}


# NumPy 2 removed these.
REMOVED = {"in1d": _in1d, "msort": _msort, "trapz": _trapz}


_OF_UFUNC = tuple(
    inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default)
    for key, default in {
        "out": None,
        "where": True,
        "casting": "same_kind",
        "order": "K",
        "dtype": None,
        "subok": True,
        "signature": None,
    }.items()
)
_ANY = inspect.signature(lambda *args, **kwargs: None)
_OF_NUMPY = {
    "*args": "Arguments of NumPy's function.",
    "casting": "How NumPy may cast the arrays.",
    "order": "Order in memory of the result.",
    "signature": "Data types of the loop that NumPy runs.",
    "where": "Mask of elements to compute; others of `out` are unchanged.",
    "ar1": "The input array.",
    "ar2": "The values to search for.",
    "assume_unique": "Whether elements are unique in both arrays, which is faster.",
    "invert": "Whether to invert the result.",
    "y": "The values to integrate.",
    "dx": "Distance between neighboring points if `x` is not given.",
    "a": "The input array.",
    "x": "The points; by default they are evenly spaced.",
}


def _financial(name: str) -> Callable:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            f"NumPy removed {name} in version 1.20. Use the package numpy_financial instead."
        )

    return function


_PARAMETERS = re.compile(r"\n *Parameters\n *-+\n")
_NEXT = re.compile(r"\n\n *\S.*\n *---")  # the next section


def _docstring(function: Callable, name: str, module: str) -> str:
    """Return a docstring with the parameters of the installed NumPy."""
    text = (
        f"Return what ``numpy.{name}`` gives for these arrays, computed on the host.\n\n"
        "It has no gradient, and raises inside `autograd.record()`."
    )
    source = function.__doc__ or ""
    heading = _PARAMETERS.search(source)
    if heading:
        end = _NEXT.search(source, heading.end())
        section = source[heading.start() : end.start() if end else None]
        margin = heading[0].partition("P")[0]
        text += "\n" + section.replace(margin, "\n").rstrip()
    if isinstance(function, onp.ufunc):
        text = complete(text, _OF_UFUNC, _OF_NUMPY, GLOSSARY)
    elif not heading or name in _OLD_SIGNATURES:
        shown = _ANY if name in _OLD_SIGNATURES else inspect.signature(function)
        text = complete(text, shown.parameters.values(), _OF_NUMPY, GLOSSARY)
    examples = example_of(f"{module}.{name}".removeprefix("mxnet.numpy."))
    return f"{text}\n\n{examples}" if examples else text


def make_fallback(name: str, source: Any = onp, module: str = "mxnet.numpy") -> Callable:
    """Create the function of `mx.np` that calls NumPy's function."""
    if name in _FINANCIAL:
        function = _financial(name)
    else:
        function = REMOVED.get(name) or getattr(source, name)

    def fallback(*args: Any, **kwargs: Any) -> Any:
        return call_numpy(function, args, _old_keywords(name, kwargs))

    functools.update_wrapper(fallback, function, updated=())
    if name in _OLD_SIGNATURES:
        del vars(fallback)["__wrapped__"]
    fallback.__name__ = fallback.__qualname__ = name
    fallback.__module__ = module
    fallback.__doc__ = _docstring(function, name, module)
    return fallback


fill(sys.modules[__name__], {name: functools.cache(partial(make_fallback, name)) for name in NAMES})
