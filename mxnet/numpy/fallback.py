"""Functions that NumPy computes: arrays go to the host and their results come back.

They have no gradient, so inside `autograd.record()` they are refused.
"""

from __future__ import annotations

import functools
import inspect
import logging
import re
from collections.abc import Callable
from typing import Any

import numpy as onp

from ..context import Context
from ..imperative.state import state
from ..ops.documentation import complete
from .array import ndarray
from .codegen.glossary import GLOSSARY
from .fallback_examples import example_of
from .making import array

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
# They would change a copy on the host, and nobody would see it.
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
    """Return a value with all arrays of `mx.np` in it replaced by NumPy's."""
    if isinstance(value, ndarray):
        return value.asnumpy()
    if isinstance(value, list | tuple):
        return type(value)(to_host(v) for v in value)
    if isinstance(value, dict):
        return {k: to_host(v) for k, v in value.items()}
    return value


def from_host(value: Any, ctx: Context | None) -> Any:
    """Return a result with all NumPy arrays in it replaced by arrays of `mx.np`."""
    if isinstance(value, onp.ndarray):
        if value.dtype.kind == "c":
            raise ValueError(f"{value.dtype} is not supported.")
        return array(value, ctx=ctx)
    if isinstance(value, list | tuple):
        found = [from_host(v, ctx) for v in value]
        return type(value)(*found) if hasattr(value, "_fields") else type(value)(found)
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
    """Let NumPy compute a function of arrays of `mx.np`."""
    name = getattr(function, "__name__", str(function))
    ctx = context_of(args) or context_of(kwargs)
    if state.recording and ctx is not None:
        raise ValueError(
            f"Falling back to NumPy operator {name} with autograd active is not supported. Call "
            "it outside of record(), or inside pause()."
        )
    _log.info("np.%s is computed by NumPy on the host.", name)
    if function in IN_PLACE:
        raise TypeError(f"numpy.{name} changes its argument, which it cannot do to mx.np arrays.")
    return from_host(function(*to_host(args), **to_host(kwargs)), ctx)


def _in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    return onp.isin(onp.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def _msort(a: Any) -> Any:
    return onp.sort(a, axis=0)


def _trapz(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    return onp.trapezoid(y, x, dx, axis)


# Keywords that NumPy has renamed, and those that it has dropped because they did nothing.
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
    "where": "Where to compute; elsewhere `out` stays as it is.",
    "ar1": "The input array.",
    "ar2": "The values to look for.",
    "assume_unique": "Whether both have no element twice, which is faster.",
    "invert": "Whether to return the opposite.",
    "y": "The values to integrate.",
    "dx": "Distance between neighboring points, if `x` is not given.",
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
_NEXT = re.compile(r"\n\n *\S.*\n *---")  # the heading after them


def _docstring(function: Callable, name: str, module: str) -> str:
    """Return a docstring with the parameters as the installed NumPy documents them."""
    text = (
        f"Return what ``numpy.{name}`` gives for these arrays, computed on the host.\n\n"
        "It has no gradient and is refused inside `autograd.record()`."
    )
    source = function.__doc__ or ""
    found = _PARAMETERS.search(source)
    if found:
        end = _NEXT.search(source, found.end())
        section = source[found.start() : end.start() if end else None]
        margin = found[0].partition("P")[0]
        text += "\n" + section.replace(margin, "\n").rstrip()
    if isinstance(function, onp.ufunc):
        text = complete(text, _OF_UFUNC, _OF_NUMPY, GLOSSARY)
    elif not found or name in _OLD_SIGNATURES:
        shown = _ANY if name in _OLD_SIGNATURES else inspect.signature(function)
        text = complete(text, shown.parameters.values(), _OF_NUMPY, GLOSSARY)
    examples = example_of(f"{module}.{name}".removeprefix("mxnet.numpy."))
    return f"{text}\n\n{examples}" if examples else text


def make_fallback(name: str, source: Any = onp, module: str = "mxnet.numpy") -> Callable:
    """Return the function of `mx.np` that NumPy computes under that name."""
    if name in _FINANCIAL:
        function = _financial(name)
    else:
        function = REMOVED.get(name) or getattr(source, name)

    def fallback(*args: Any, **kwargs: Any) -> Any:
        return call_numpy(function, args, _old_keywords(name, kwargs))

    functools.update_wrapper(fallback, function, updated=())
    if name in _OLD_SIGNATURES:
        del fallback.__wrapped__
    fallback.__name__ = fallback.__qualname__ = name
    fallback.__module__ = module
    fallback.__doc__ = _docstring(function, name, module)
    return fallback


__all__ = list(NAMES)
for _name in __all__:
    globals()[_name] = make_fallback(_name)
