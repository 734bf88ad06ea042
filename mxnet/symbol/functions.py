"""Functions of `mx.sym` that are not operators: variables, groups, files, creation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import dtypes
from ..attribute import AttrScope
from ..base import integer_types, numeric_types, string_types  # noqa: F401 (MXNet shows them here)
from ..error import FormatError
from ..formats.files import existing_file
from ..graph import Entry, variable
from ..graph.node import stored_key
from ..graph.symbol_json import loads
from ..ops.attributes import to_string
from ..ops.tensor.arithmetic import BY_NAME, Operation
from ..runtime.composites.functions import split_v2 as _split_v2
from ..runtime.composites.namespace import bind
from .codegen import F
from .methods import apply_to_number, apply_to_symbols
from .symbol import Symbol

if TYPE_CHECKING:
    from ._stubs.functions import *  # noqa: F403

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "eye",
    "full",
    "histogram",
    "hypot",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "pow",
    "power",
    "split_v2",
    "var",
    "zeros",
]

STORAGE_TYPES = {"default": 0, "row_sparse": 1, "csr": 2}


def var(
    name: str,
    attr: dict[str, str] | None = None,
    shape: Any = None,
    lr_mult: float | None = None,
    wd_mult: float | None = None,
    dtype: Any = None,
    init: Any = None,
    stype: str | None = None,
    **kwargs: Any,
) -> Symbol:
    """Create a variable: an input of a graph.

    Parameters
    ----------
    name : str
        Name of the variable.
    attr : dict of str
        Further attributes.
    shape : tuple of int
        Shape of the variable; sizes of 0 are unknown.
    lr_mult : float
        Factor of the learning rate of this parameter.
    wd_mult : float
        Factor of the weight decay of this parameter.
    dtype : str or NumPy type
        Data type of the variable.
    init
        Initializer of the parameter, or its name.
    stype : {'default', 'row_sparse', 'csr'}
        Storage type: ``'default'`` (dense), ``'csr'`` or ``'row_sparse'``.
    kwargs
        Further attributes, of the form ``__name__``.

    >>> mx.sym.var("w", shape=(2, 3), lr_mult=2.0).attr("lr_mult")
    '2.0'
    """
    if not isinstance(name, str):
        raise TypeError(f"Expect a string for variable `name`, got {name!r}.")
    scope = AttrScope._current.value._attr
    attributes = {**scope, **(attr or {})}
    if not all(isinstance(value, str) for value in attributes.values()):
        raise ValueError(f"Attributes of variable {name!r} need to be strings, got {attributes}.")
    extra = {stored_key(key): value for key, value in attributes.items()}
    if shape is not None:
        extra["__shape__"] = to_string(shape)
    if lr_mult is not None:
        extra["__lr_mult__"] = to_string(lr_mult)
    if wd_mult is not None:
        extra["__wd_mult__"] = to_string(wd_mult)
    if dtype is not None:
        extra["__dtype__"] = str(dtypes.BY_TORCH[dtypes.to_torch(dtype)].code)
    if init is not None:
        extra["__init__"] = init if isinstance(init, str) else init.dumps()
    if stype is not None:
        if stype not in STORAGE_TYPES:
            raise ValueError(f"Unknown stype {stype!r}; known are {', '.join(STORAGE_TYPES)}.")
        extra["__storage_type__"] = str(STORAGE_TYPES[stype])
    for key, value in kwargs.items():
        if not (key.startswith("__") and key.endswith("__")):
            raise ValueError(
                f"Attribute name={key} is not supported. Additional attributes must start and end "
                f"with double underscores, e.g, __{key}__"
            )
        extra[key] = to_string(value)
    return Symbol((Entry(variable(name, extra)),))


Variable = var


def Group(symbols: Sequence[Symbol], create_fn: Callable[[list[Entry]], Symbol] = Symbol) -> Symbol:
    """Group symbols into one symbol with all their outputs.

    Parameters
    ----------
    symbols
        The symbols.
    create_fn
        Class of the result.

    >>> mx.sym.Group([mx.sym.var("a"), mx.sym.var("b")]).list_outputs()
    ['a', 'b']
    """
    symbols = list(symbols) if symbols is not None else []
    if not symbols or any(not isinstance(s, Symbol) for s in symbols):
        raise TypeError("Expected a list of symbols as input")
    return create_fn([entry for s in symbols for entry in s._heads])


def load(fname: str) -> Symbol:
    """Load a symbol from a JSON file of any MXNet version.

    Parameters
    ----------
    fname
        Path of the file.

    >>> mx.sym.var("x").save("net-symbol.json")
    >>> mx.sym.load("net-symbol.json")
    <Symbol x>
    """
    if not isinstance(fname, str | Path):
        raise TypeError(f"fname need to be string, got {fname!r}.")
    text = _text(existing_file(fname).read_bytes())
    try:
        return load_json(text)
    except FormatError as error:
        raise FormatError(f"{fname}: {error}") from error


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="surrogateescape")


def load_json(json_str: str | bytes) -> Symbol:
    """Load a symbol from a JSON string of any MXNet version.

    Parameters
    ----------
    json_str
        The JSON string, or its bytes.

    >>> mx.sym.load_json(mx.sym.relu(mx.sym.var("x"), name="r").tojson())
    <Symbol r>
    """
    if isinstance(json_str, bytes):
        json_str = _text(json_str)
    if not isinstance(json_str, str):
        raise TypeError(f"json_str required to be string, got {type(json_str).__name__}.")
    return Symbol(loads(json_str))


fromjson = load_json


def zeros(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return a symbol of zeros; sizes of 0 are inferred from the graph.

    Parameters
    ----------
    shape
        Shape of the result; sizes of 0 are inferred from the graph.
    dtype
        Data type of the result; float32 by default.

    >>> mx.sym.zeros((2, 3)).infer_shape()[1]
    [(2, 3)]
    """
    return F._zeros(shape=shape, dtype=dtype or "float32", **kwargs)


def ones(shape: Any, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return a symbol of ones.

    Parameters
    ----------
    shape
        Shape of the result; sizes of 0 are inferred from the graph.
    dtype
        Data type of the result; float32 by default.

    >>> mx.sym.ones((2, 3)).infer_shape()[1]
    [(2, 3)]
    """
    return F._ones(shape=shape, dtype=dtype or "float32", **kwargs)


def full(shape: Any, val: float, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return a symbol filled with one value.

    Parameters
    ----------
    shape
        Shape of the result; sizes of 0 are inferred from the graph.
    val
        The value to fill with.
    dtype
        Data type of the result; float32 by default.

    >>> mx.sym.full((2,), 7).eval()[0].asnumpy()
    array([7., 7.], dtype=float32)
    """
    return F._full(shape=shape, dtype=dtype or "float32", value=float(val), **kwargs)


def arange(
    start: float,
    stop: float | None = None,
    step: float = 1.0,
    repeat: int = 1,
    infer_range: bool = False,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """Return evenly spaced values in [start, stop), each repeated `repeat` times.

    Parameters
    ----------
    start
        Start of the interval, included. If `stop` is None, the interval is ``[0, start)``.
    stop
        End of the interval, excluded.
    step
        Distance between neighboring values; it may be negative.
    repeat
        Number of repetitions of each value.
    infer_range
        Whether to infer `stop` from the shape required by the graph.
    name
        Name of the node; by default the operator's name and a number.
    dtype
        Data type of the result; float32 by default.

    >>> mx.sym.arange(3).eval()[0].asnumpy()
    array([0., 1., 2.], dtype=float32)
    """
    return F._arange(
        start=start,
        stop=stop,
        step=step,
        repeat=repeat,
        infer_range=infer_range,
        dtype=dtype or "float32",
        name=name,
    )


def linspace(
    start: float,
    stop: float,
    num: int,
    endpoint: bool = True,
    name: str | None = None,
    dtype: Any = None,
) -> Symbol:
    """Return `num` evenly spaced values from `start` to `stop`.

    Parameters
    ----------
    start
        First value.
    stop
        End of the interval; excluded with ``endpoint=False``.
    num
        Number of values.
    endpoint
        Whether to include `stop`.
    name
        Name of the node; by default the operator's name and a number.
    dtype
        Data type of the result; float32 by default.

    >>> mx.sym.linspace(0, 1, 3).eval()[0].asnumpy()
    array([0. , 0.5, 1. ], dtype=float32)
    """
    dtype = dtype or "float32"
    return F._linspace(start=start, stop=stop, num=num, endpoint=endpoint, dtype=dtype, name=name)


def eye(N: int, M: int = 0, k: int = 0, dtype: Any = None, **kwargs: Any) -> Symbol:
    """Return a matrix with ones on a diagonal.

    Parameters
    ----------
    N
        Number of rows.
    M
        Number of columns; 0 means `N`.
    k
        Index of the diagonal: 0 is the main diagonal, positive ones are above it, negative ones
        below.
    dtype
        Data type of the result; float32 by default.

    >>> mx.sym.eye(2).eval()[0].asnumpy()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return F._eye(N=N, M=M, k=k, dtype=dtype or "float32", **kwargs)


def histogram(a: Symbol, bins: Any = 10, range: Any = None, **kwargs: Any) -> Symbol:
    """Return counts of values in bins, and the edges of the bins.

    Parameters
    ----------
    a
        The values.
    bins
        Number of equal bins, or a symbol of their edges.
    range
        Lower and upper limit of the bins; required if `bins` is a number.

    >>> counts = mx.sym.histogram(mx.sym.var("x"), bins=2, range=(1, 3))[0]
    >>> counts.eval(x=mx.nd.array([1, 2, 2]))[0].asnumpy()
    array([1, 2])
    """
    if isinstance(bins, Symbol):
        return F._histogram(a, bins, **kwargs)
    if not isinstance(bins, integer_types):
        raise ValueError("bins argument should be either an integer or an NDArray (a Symbol here).")
    if range is None:
        raise ValueError("null range is not supported in symbol mode: give range=(low, high).")
    return F._histogram(a, bin_cnt=bins, range=range, **kwargs)


split_v2 = bind(_split_v2, F, __name__)


def _two_sided(operation: Operation, left: Any, right: Any) -> Any:
    """Apply a binary operation to symbols and numbers; two numbers give a number."""
    if isinstance(left, Symbol) and isinstance(right, Symbol):
        return apply_to_symbols(operation.elementwise, operation.symbol_hint, left, right)
    if isinstance(left, Symbol) and isinstance(right, numeric_types):
        return apply_to_number(operation.scalar, operation.scalar_hint, left, right)
    if isinstance(left, numeric_types) and isinstance(right, Symbol):
        return apply_to_number(operation.reversed_scalar, operation.reversed_hint, right, left)
    if isinstance(left, numeric_types) and isinstance(right, numeric_types):
        return operation.on_numbers(left, right)
    raise TypeError(f"types ({type(left)}, {type(right)}) not supported: use Symbols and numbers.")


def pow(base: Any, exp: Any) -> Any:
    """Return `base` to the power of `exp`, elementwise; two numbers give a number.

    Parameters
    ----------
    base, exp
        A symbol or a number.

    >>> mx.sym.pow(mx.sym.var("x"), 2).eval(x=mx.nd.array([3]))[0].asnumpy()
    array([9.], dtype=float32)
    """
    return _two_sided(BY_NAME["power"], base, exp)


def power(base: Any, exp: Any) -> Any:
    """Return `base` to the power of `exp`, elementwise; two numbers give a number.

    Parameters
    ----------
    base, exp
        A symbol or a number.

    >>> mx.sym.power(mx.sym.var("x"), 2).eval(x=mx.nd.array([3]))[0].asnumpy()
    array([9.], dtype=float32)
    """
    return pow(base, exp)


def maximum(left: Any, right: Any) -> Any:
    """Return the larger of both, elementwise; two numbers give a number.

    Parameters
    ----------
    left, right
        A symbol or a number.

    >>> mx.sym.maximum(mx.sym.var("x"), 2).eval(x=mx.nd.array([1, 3]))[0].asnumpy()
    array([2., 3.], dtype=float32)
    """
    return _two_sided(BY_NAME["maximum"], left, right)


def minimum(left: Any, right: Any) -> Any:
    """Return the smaller of both, elementwise; two numbers give a number.

    Parameters
    ----------
    left, right
        A symbol or a number.

    >>> mx.sym.minimum(mx.sym.var("x"), 2).eval(x=mx.nd.array([1, 3]))[0].asnumpy()
    array([1., 2.], dtype=float32)
    """
    return _two_sided(BY_NAME["minimum"], left, right)


def hypot(left: Any, right: Any) -> Any:
    """Return the length of the hypotenuse, elementwise; two numbers give a number.

    Parameters
    ----------
    left, right
        A symbol or a number.

    >>> mx.sym.hypot(mx.sym.var("x"), 4).eval(x=mx.nd.array([3]))[0].asnumpy()
    array([5.], dtype=float32)
    """
    return _two_sided(BY_NAME["hypot"], left, right)
