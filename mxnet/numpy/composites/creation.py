"""Composites that create arrays."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as onp

from ..codegen.functions import NumpyNamespace, check_order, is_number


def _shape(shape: Any) -> tuple[int, ...]:
    if type(shape) is not tuple and isinstance(shape, numbers.Integral):
        return (int(shape),)
    return tuple(map(int, shape))


def _dtype(dtype: Any) -> Any:
    return onp.float32 if dtype is None else dtype


def zeros(
    F: NumpyNamespace, shape: Any, dtype: Any = None, order: str = "C", ctx: Any = None
) -> Any:
    """Return a new array of the given shape, filled with zeros.

    >>> mx.np.zeros((2, 3)).shape
    (2, 3)
    """
    check_order(order)
    return F._npi_zeros(shape=_shape(shape), ctx=F.context_text(ctx), dtype=_dtype(dtype))


def ones(
    F: NumpyNamespace, shape: Any, dtype: Any = onp.float32, order: str = "C", ctx: Any = None
) -> Any:
    """Return a new array of the given shape, filled with ones.

    >>> mx.np.ones(2)
    array([1., 1.])
    """
    check_order(order)
    return F._npi_ones(shape=_shape(shape), ctx=F.context_text(ctx), dtype=_dtype(dtype))


def full(
    F: NumpyNamespace,
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Return a new array of the given shape, filled with a value.

    >>> mx.np.full((2,), 7)
    array([7., 7.])
    """
    check_order(order)
    if F.is_array(fill_value):
        output = F._npi_broadcast_to(fill_value, shape=_shape(shape))
        return output if dtype is None else F._npi_cast(output, dtype=dtype)
    if dtype is None:
        dtype = onp.bool_ if isinstance(fill_value, bool | onp.bool_) else onp.float32
    return F._npi_full(
        shape=_shape(shape), value=float(fill_value), ctx=F.context_text(ctx), dtype=dtype, out=out
    )


def _filled_like(
    F: NumpyNamespace, a: Any, value: Any, dtype: Any, order: str, ctx: Any, out: Any
) -> Any:
    check_order(order)
    rest = {"out": out}
    if ctx is not None:
        rest["ctx"] = str(ctx)
    if dtype is not None:
        rest["dtype"] = dtype
    return F._npi_full_like(a, fill_value=float(value), **rest)


def full_like(
    F: NumpyNamespace,
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    order: str = "C",
    ctx: Any = None,
    out: Any = None,
) -> Any:
    """Return a new array with the shape and dtype of another one, filled with a value.

    >>> mx.np.full_like(mx.np.zeros(2), 3)
    array([3., 3.])
    """
    return _filled_like(F, a, fill_value, dtype, order, ctx, out)


def zeros_like(
    F: NumpyNamespace, a: Any, dtype: Any = None, order: str = "C", ctx: Any = None, out: Any = None
) -> Any:
    """Return an array of zeros with the shape and dtype of another one.

    >>> mx.np.zeros_like(mx.np.ones(2))
    array([0., 0.])
    """
    return _filled_like(F, a, 0, dtype, order, ctx, out)


def ones_like(
    F: NumpyNamespace, a: Any, dtype: Any = None, order: str = "C", ctx: Any = None, out: Any = None
) -> Any:
    """Return an array of ones with the shape and dtype of another one.

    >>> mx.np.ones_like(mx.np.zeros(2))
    array([1., 1.])
    """
    return _filled_like(F, a, 1, dtype, order, ctx, out)


def empty_like(
    F: NumpyNamespace,
    prototype: Any,
    dtype: Any = None,
    order: str = "C",
    subok: bool = False,
    shape: Any = None,
) -> Any:
    """Return an uninitialized array with the shape and dtype of another one.

    >>> mx.np.empty_like(mx.np.zeros((2, 3))).shape
    (2, 3)
    """
    if order not in ("C", "K"):
        check_order(order)
    if subok:
        raise NotImplementedError("subok=True is not supported.")
    if shape is not None:
        raise NotImplementedError("shape= is not supported; use mx.np.empty(shape).")
    return _filled_like(F, prototype, 0, dtype, "C", None, None)


def arange(
    F: NumpyNamespace,
    start: Any,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    ctx: Any = None,
) -> Any:
    """Return evenly spaced values in ``[start, stop)``.

    The default dtype is float32.

    Parameters
    ----------
    start
        Start of the interval, included. If `stop` is None, the interval is ``[0, start)``.
    stop
        End of the interval, excluded.

    >>> mx.np.arange(3)
    array([0., 1., 2.])
    """
    if stop is None:
        start, stop = 0, start
    if step is None:
        step = 1
    if step == 0:
        raise ZeroDivisionError("step cannot be 0")
    return F._npi_arange(
        start=start, stop=stop, step=step, dtype=_dtype(dtype), ctx=F.context_text(ctx)
    )


def linspace(
    F: NumpyNamespace,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: Any = 0,
    ctx: Any = None,
) -> Any:
    """Return `num` evenly spaced values over an interval.

    Parameters
    ----------
    stop
        End of the interval; excluded with ``endpoint=False``.
    axis
        Position of the new axis if `start` and `stop` are arrays; only 0.

    >>> mx.np.linspace(0, 1, 3)
    array([0. , 0.5, 1. ])
    """
    if not is_number(start) or not is_number(stop):
        raise NotImplementedError("linspace: start and stop must be numbers.")
    if axis != 0:
        raise NotImplementedError("linspace: only axis 0 is supported.")
    count = num if not endpoint else num - 1
    step = (stop - start) / count if count > 0 else onp.nan
    output = F._npi_linspace(
        start=start,
        stop=stop,
        num=num,
        endpoint=endpoint,
        ctx=F.context_text(ctx),
        dtype=_dtype(dtype),
    )
    return (output, step) if retstep else output


def logspace(
    F: NumpyNamespace,
    start: Any,
    stop: Any,
    num: Any = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: Any = 0,
    ctx: Any = None,
) -> Any:
    """Return `num` values spaced evenly on a logarithmic scale.

    Parameters
    ----------
    start
        Exponent of the first number.
    stop
        Exponent of the last number.
    axis
        Position of the new axis; only 0.

    >>> mx.np.logspace(0, 2, 3)
    array([  1.,  10., 100.])
    """
    if axis != 0:
        raise NotImplementedError("logspace: only axis 0 is supported.")
    return F._npi_logspace(
        start=start,
        stop=stop,
        num=num,
        endpoint=endpoint,
        base=base,
        ctx=F.context_text(ctx),
        dtype=_dtype(dtype),
    )


def eye(
    F: NumpyNamespace, N: Any, M: Any = None, k: Any = 0, dtype: Any = onp.float32, **kwargs: Any
) -> Any:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    M
        Number of columns; by default as many as rows.

    >>> mx.np.eye(2)
    array([[1., 0.],
           [0., 1.]])
    """
    check_order(kwargs.pop("order", "C"))
    ctx = kwargs.pop("ctx", None)
    if kwargs:
        raise TypeError(f"eye() got an unexpected keyword argument {next(iter(kwargs))!r}")
    rest = {} if M is None else {"M": M}
    return F._npi_eye(N=N, k=k, ctx=F.context_text(ctx), dtype=_dtype(dtype), **rest)


def identity(F: NumpyNamespace, n: Any, dtype: Any = None, ctx: Any = None) -> Any:
    """Return the identity matrix of a size.

    Parameters
    ----------
    n
        Number of rows and columns.

    >>> mx.np.identity(2)
    array([[1., 0.],
           [0., 1.]])
    """
    if not isinstance(n, numbers.Integral):
        raise TypeError("Input 'n' should be an integer")
    if n < 0:
        raise ValueError("Input 'n' cannot be negative")
    return F._npi_identity(shape=(int(n), int(n)), ctx=F.context_text(ctx), dtype=_dtype(dtype))


def indices(F: NumpyNamespace, dimensions: Any, dtype: Any = onp.int32, ctx: Any = None) -> Any:
    """Return an array of the indices of a grid.

    >>> mx.np.indices((2, 2))[0]
    array([[0, 0],
           [1, 1]], dtype=int32)
    """
    if not isinstance(dimensions, tuple | list):
        raise ValueError("The dimensions must be sequence of ints")
    dtype = onp.int32 if dtype is None else dtype
    return F._npi_indices(dimensions=tuple(dimensions), dtype=dtype, ctx=F.context_text(ctx))


def hanning(F: NumpyNamespace, M: Any, dtype: Any = onp.float32, ctx: Any = None) -> Any:
    """Return the Hanning window.

    Parameters
    ----------
    M
        Number of points.

    >>> mx.np.hanning(3)
    array([0., 1., 0.])
    """
    return F._npi_hanning(M=M, dtype=_dtype(dtype), ctx=F.context_text(ctx))


def hamming(F: NumpyNamespace, M: Any, dtype: Any = onp.float32, ctx: Any = None) -> Any:
    """Return the Hamming window.

    Parameters
    ----------
    M
        Number of points.

    >>> mx.np.hamming(3)
    array([0.08, 1.  , 0.08])
    """
    return F._npi_hamming(M=M, dtype=_dtype(dtype), ctx=F.context_text(ctx))


def blackman(F: NumpyNamespace, M: Any, dtype: Any = onp.float32, ctx: Any = None) -> Any:
    """Return the Blackman window.

    Parameters
    ----------
    M
        Number of points.

    >>> mx.np.blackman(3).shape
    (3,)
    """
    return F._npi_blackman(M=M, dtype=_dtype(dtype), ctx=F.context_text(ctx))
