"""Comparison of arrays, symbols and optimizers within tolerances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import mxnet as mx

from .. import accelerator, dtypes
from ..context import torch_device
from ..ndarray import NDArray
from ..runtime.array import plain
from ..symbol import Symbol

Tolerance = float | Mapping[np.dtype, float] | None

_FLOAT64 = np.dtype("float64")
_EXACT = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64")


def _by_type(float16: float, float32: float, float64: float) -> dict[np.dtype, float]:
    floats = {"float16": float16, "float32": float32, "float64": float64}
    return {np.dtype(k): v for k, v in {**floats, **dict.fromkeys(_EXACT, 0)}.items()}


def default_dtype() -> type:
    """Return the type of arrays where none is given.

    >>> mx.test_utils.default_dtype()
    <class 'numpy.float32'>
    """
    return np.float32


def default_rtols() -> dict[np.dtype, float]:
    """Return the relative tolerance of each data type.

    >>> mx.test_utils.default_rtols()[np.dtype("float32")] < 1
    True
    """
    return _by_type(1e-2, 1e-4, 1e-5)


def default_atols() -> dict[np.dtype, float]:
    """Return the absolute tolerance of each data type.

    >>> mx.test_utils.default_atols()[np.dtype("float32")] < 1
    True
    """
    return _by_type(1e-1, 1e-3, 1e-20)


def default_numeric_eps() -> dict[np.dtype, float]:
    """Return the step of numeric gradients; a power of two, so that it is exact.

    >>> len(mx.test_utils.default_numeric_eps()) > 0
    True
    """
    return {
        np.dtype("float16"): 2.0**-6,
        np.dtype("float32"): 2.0**-9,
        np.dtype("float64"): 2.0**-14,
    }


def effective_dtype(dat: Any) -> np.dtype:
    """Return the type whose precision an array really has.

    Matrix products of float32 on a GPU that computes them in TF32 are as exact as float16.

    Parameters
    ----------
    dat
        The array.

    >>> mx.test_utils.effective_dtype(np.ones(2))
    dtype('float64')
    """
    dtype = np.dtype(dat.dtype)
    ctx = getattr(dat, "ctx", None)
    if dtype == np.float32 and ctx is not None and accelerator.uses_tf32(torch_device(ctx)):
        return np.dtype("float16")
    return np.dtype("float16") if dtype == dtypes.bfloat16 else dtype


def get_tolerance(dat: Any, tol: Tolerance, default_tol: Mapping[np.dtype, float]) -> float:
    """Return the tolerance for an array: a number as it is, else by type, else the default.

    Parameters
    ----------
    dat
        The array.
    tol
        A number, a dict of data types, or None.
    default_tol
        Tolerance of each data type.

    >>> mx.test_utils.get_tolerance(np.ones(2), 0.5, {})
    0.5
    """
    dtype = effective_dtype(dat)
    default = default_tol.get(dtype, 0)
    if tol is None:
        return default
    return tol.get(dtype, default) if isinstance(tol, Mapping) else tol


def get_tols(x: Any, y: Any, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """Return the tolerances for a comparison: those of the less precise array.

    Parameters
    ----------
    x, y
        The arrays.
    rtol, atol
        Relative and absolute tolerance; by default those of the data type.

    >>> get_tols(np.zeros(2, "float16"), np.zeros(2, "float32"), None, None)
    (0.01, 0.1)
    """
    # Python's numbers are as exact as float64.
    x, y = (np.asarray(v) if not hasattr(v, "dtype") else v for v in (x, y))
    x, y = (v.astype("float64") if _is_python_int(v) else v for v in (x, y))
    relative = [get_tolerance(v, rtol, default_rtols()) for v in (x, y)]
    absolute = [get_tolerance(v, atol, default_atols()) for v in (x, y)]
    return max(relative), max(absolute)


def _is_python_int(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 0 and value.dtype.kind == "i"


def get_rtol(rtol: Tolerance = None, dtype: np.dtype = _FLOAT64) -> Any:
    """Return a relative tolerance: the one given, or the default of the type.

    Parameters
    ----------
    rtol
        Relative tolerance; by default that of the data type.
    dtype
        Data type of the array.

    >>> mx.test_utils.get_rtol(0.5)
    0.5
    """
    return default_rtols()[np.dtype(dtype)] if rtol is None else rtol


def get_atol(atol: Tolerance = None, dtype: np.dtype = _FLOAT64) -> Any:
    """Return an absolute tolerance: the one given, or the default of the type.

    Parameters
    ----------
    atol
        Absolute tolerance; by default that of the data type.
    dtype
        Data type of the array.

    >>> mx.test_utils.get_atol(0.5)
    0.5
    """
    return default_atols()[np.dtype(dtype)] if atol is None else atol


def get_etol(etol: float | None = None) -> float:
    """Return the fraction of elements that may differ: the given one, or 0.

    Parameters
    ----------
    etol
        Fraction of the elements that may differ.

    >>> mx.test_utils.get_etol(0.5)
    0.5
    """
    return 0 if etol is None else etol


# -- comparisons ----------------------------------------------------------------------------------


_TINY = 1e-20  # keeps the ratio finite where both tolerances are 0


def _host(value: Any) -> np.ndarray:
    if not isinstance(value, NDArray):
        return np.asarray(value)
    values = value.asnumpy()
    return plain(value).float().cpu().numpy() if values.dtype == dtypes.bfloat16 else values


def _shown(value: Any) -> str:
    with np.printoptions(threshold=4, suppress=True):
        return repr(value) if isinstance(value, np.ndarray) else str(value)


def _message(what: str, a: Any, b: Any) -> str:
    return f"\nItems are not equal{what}\n ACTUAL: {_shown(a)}\n DESIRED: {_shown(b)}"


def same(a: Any, b: Any) -> bool:
    """Return whether two arrays have the same shape and elements.

    Parameters
    ----------
    a, b
        The arrays.

    >>> mx.test_utils.same(np.ones(2), np.ones(2))
    True
    """
    return np.array_equal(_host(a), _host(b))


def same_array(array1: NDArray, array2: NDArray) -> bool:
    """Return whether two arrays of one shape are the same memory.

    Parameters
    ----------
    array1, array2
        The arrays.

    >>> x = mx.nd.ones((2, 2))
    >>> same_array(x, x[:]), same_array(x, x.copy())
    (True, False)
    """
    if array1 is array2:
        return True
    first, second = plain(array1), plain(array2)
    return first.shape == second.shape and first.data_ptr() == second.data_ptr()


def checkShapes(a: Any, b: Any) -> None:
    """Raise AssertionError unless two arrays have the same shape.

    Parameters
    ----------
    a, b
        The arrays.

    >>> mx.test_utils.checkShapes(mx.nd.ones(2), mx.nd.zeros(2))
    """
    if a.shape != b.shape:
        a, b = _host(a), _host(b)
        raise AssertionError(
            _message(f": a.shape = {a.shape} and b.shape = {b.shape} are not equal", a, b)
        )


def almost_equal(
    a: Any,
    b: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    use_broadcast: bool = True,
) -> bool:
    """Return whether ``|a - b| <= atol + rtol * |b|`` everywhere; by default as exact as float64.

    Parameters
    ----------
    a, b
        The arrays.
    rtol, atol
        Relative and absolute tolerance; by default those of the data type.
    equal_nan
        Whether NaN equals NaN.
    use_broadcast
        Whether shapes may differ as far as broadcasting allows.

    >>> almost_equal(np.array([1.0]), np.array([1.1])), almost_equal(1.0, 1.1, rtol=0.2)
    (False, True)
    """
    if not use_broadcast:
        checkShapes(np.asarray(a), np.asarray(b))
    return bool(
        np.allclose(
            _host(a), _host(b), rtol=get_rtol(rtol), atol=get_atol(atol), equal_nan=equal_nan
        )
    )


def _violation(a: np.ndarray, b: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.abs(np.subtract(a, b, dtype=np.result_type(a, b, np.float32)))
        return difference / (atol + rtol * np.abs(b) + _TINY)


def _find_max_violation(a: Any, b: Any, rtol: float, atol: float) -> tuple[tuple[int, ...], float]:
    ratio = _violation(np.asarray(a), np.asarray(b), rtol, atol)
    index = np.unravel_index(np.argmax(ratio), ratio.shape)
    return tuple(int(i) for i in index), ratio[index]


def locationError(
    a: np.ndarray, b: np.ndarray, index: tuple, names: Sequence[str], maxError: bool = False
) -> str:
    """Return a line with the position and the values at which two arrays differ.

    Parameters
    ----------
    a, b
        The arrays.
    index
        Where they differ.
    names
        Names of the arrays in messages.
    maxError
        Whether it is the largest difference.

    >>> text = mx.test_utils.locationError(np.ones(2), np.zeros(2), (1,), ("a", "b"))
    >>> "a" in text
    True
    """
    kind = "maximum " if maxError else ""
    return (
        f"Location of {kind}error: {index}, {names[0]}={float(np.squeeze(a[index])):.8f}, "
        f"{names[1]}={float(np.squeeze(b[index])):.8f}"
    )


def assert_almost_equal(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Raise AssertionError unless two arrays are equal within tolerances; print where they differ.

    Parameters
    ----------
    a, b : NDArray, NumPy array or number
        The first array.
    rtol, atol : float or dict of dtype to float, optional
        By default those of the less exact data type of the two.
    names
        Names of the arrays in messages.
    equal_nan
        Whether NaN equals NaN.
    use_broadcast
        Whether shapes may differ as far as broadcasting allows.
    mismatches
        Number of differences to print.

    >>> assert_almost_equal(mx.nd.ones((2,)), np.array([1.0, 1.00001]))
    """
    if not use_broadcast:
        checkShapes(np.asarray(a) if np.isscalar(a) else a, np.asarray(b) if np.isscalar(b) else b)
    rtol, atol = get_tols(a, b, rtol, atol)
    given_a, given_b = (_host(v) if isinstance(v, NDArray) else v for v in (a, b))
    first, second = np.broadcast_arrays(_host(a), _host(b))
    fits = np.isclose(first, second, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if fits.all():
        return
    index, worst = _find_max_violation(np.where(fits, second, first), second, rtol, atol)
    limit = f"Error {worst:f} exceeds tolerance rtol={rtol:e}, atol={atol:e}"
    if first.ndim == 0:
        raise AssertionError(_message(f":\n{limit}.\n", given_a, given_b))
    _print_worst(first, second, fits, rtol, atol, names, mismatches[0])
    share = 100 * (1 - np.count_nonzero(fits) / fits.size)
    where = locationError(first, second, index, names, maxError=True)
    raise AssertionError(_message(f":\n{limit} (mismatch {share:f}%).\n{where}", given_a, given_b))


def _print_worst(
    a: np.ndarray,
    b: np.ndarray,
    fits: np.ndarray,
    rtol: float,
    atol: float,
    names: Sequence[str],
    count: int,
) -> None:
    print(f"\n*** Maximum errors for vector of size {a.size}:  rtol={rtol}, atol={atol}\n")  # noqa: T201
    ratio = np.where(fits, -1, _violation(a, b, rtol, atol))
    ratio = np.where(np.isnan(ratio), np.inf, ratio).ravel()
    order = np.argsort(-ratio, kind="stable")[: min(count, int(np.count_nonzero(~fits)))]
    real = _violation(a, b, rtol, atol).ravel()
    for number, flat in enumerate(order, start=1):
        index = tuple(int(i) for i in np.unravel_index(flat, a.shape))
        print(f"{number:3d}: Error {real[flat]:f}  {locationError(a, b, index, names)}")  # noqa: T201


def assert_allclose(
    a: Any, b: Any, rtol: float = 1e-07, atol: float = 0, equal_nan: bool = True
) -> None:
    """Raise AssertionError unless two arrays are equal within NumPy's narrow tolerances.

    Parameters
    ----------
    a, b
        The arrays.
    rtol, atol
        Relative and absolute tolerance; by default those of the data type.
    equal_nan
        Whether NaN equals NaN.

    >>> mx.test_utils.assert_allclose(mx.nd.ones(2), np.ones(2))
    """
    assert_almost_equal(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)


def assert_almost_equal_with_err(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    etol: float | None = None,
    names: Sequence[str] = ("a", "b"),
    equal_nan: bool = False,
    mismatches: tuple[int, int] = (10, 10),
) -> None:
    """Raise AssertionError if more than the part `etol` of the elements differs.

    Parameters
    ----------
    a, b
        The arrays.
    rtol, atol
        Relative and absolute tolerance; by default those of the data type.
    etol
        Fraction of the elements that may differ.
    names
        Names of the arrays in messages.
    equal_nan
        Whether NaN equals NaN.
    mismatches
        Number of differences to print.

    >>> mx.test_utils.assert_almost_equal_with_err(np.ones(10), np.ones(10), etol=0.1)
    """
    allowed = get_etol(etol)
    if allowed > 0:
        r, t = get_tols(a, b, rtol, atol)
        fits = np.isclose(_host(a), _host(b), rtol=r, atol=t, equal_nan=equal_nan)
        if 1 - np.count_nonzero(fits) / fits.size <= allowed:
            return
    assert_almost_equal(a, b, rtol, atol, names, equal_nan, mismatches=mismatches)


def assert_almost_equal_ignore_nan(
    a: Any,
    b: Any,
    rtol: Tolerance = None,
    atol: Tolerance = None,
    names: Sequence[str] = ("a", "b"),
) -> None:
    """Raise AssertionError unless two arrays are equal where neither is NaN.

    Parameters
    ----------
    a, b
        The arrays.
    rtol, atol
        Relative and absolute tolerance; by default those of the data type.
    names
        Names of the arrays in messages.

    >>> mx.test_utils.assert_almost_equal_ignore_nan(np.array([1, np.nan]), np.array([1.0, 2]))
    """
    a, b = _host(a), _host(b)
    nowhere = np.isnan(a) | np.isnan(b)
    assert_almost_equal(np.where(nowhere, 0, a), np.where(nowhere, 0, b), rtol, atol, names)


def assert_exception(
    f: Callable, exception_type: type[BaseException], *args: Any, **kwargs: Any
) -> None:
    """Raise AssertionError unless calling a function raises an exception of the given type.

    Parameters
    ----------
    f
        The function.
    exception_type
        The type of the exception.
    args
        Arguments of the function.

    >>> mx.test_utils.assert_exception(int, ValueError, "one")
    """
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{f} did not raise {exception_type.__name__}")


def same_symbol_structure(sym1: Symbol, sym2: Symbol) -> bool:
    """Return whether two graphs have the same operators at the same positions.

    Parameters
    ----------
    sym1
        The first graph.
    sym2
        The second graph.

    >>> mx.test_utils.same_symbol_structure(mx.sym.var("x") + 1, mx.sym.var("y") + 1)
    True
    """

    def form(symbol: Symbol) -> list:
        graph = symbol._graph
        return [
            (n.op and n.op.name, [(graph.position[e.node], e.index) for e in n.inputs])
            for n in graph.nodes
        ]

    return form(sym1) == form(sym2)


def compare_ndarray_tuple(t1: Any, t2: Any, rtol: Tolerance = None, atol: Tolerance = None) -> None:
    """Compare arrays, or nested tuples of them; None is equal to everything.

    Parameters
    ----------
    t1
        The first array, or tuple.
    t2
        The second array, or tuple.
    rtol, atol
        Relative and absolute tolerance; by default those of the data type.

    >>> mx.test_utils.compare_ndarray_tuple((mx.nd.ones(2), None), (mx.nd.ones(2), None))
    """
    if t1 is None or t2 is None:
        return
    if isinstance(t1, tuple):
        for first, second in zip(t1, t2, strict=True):
            compare_ndarray_tuple(first, second, rtol, atol)
    else:
        assert_almost_equal(t1, t2, rtol=rtol, atol=atol)


def compare_optimizer(
    opt1: Any,
    opt2: Any,
    shape: Any,
    dtype: Any,
    w_stype: str = "default",
    g_stype: str = "default",
    rtol: float = 1e-4,
    atol: float = 1e-5,
    compare_states: bool = True,
    ntensors: int = 1,
) -> None:
    """Raise AssertionError unless two optimizers make the same step from the same place.

    The first optimizer gets dense copies. If `shape` is a list of shapes, it updates one array
    after the other, the second all of them in one call.

    Parameters
    ----------
    opt1
        The first optimizer.
    opt2
        The second optimizer.
    shape
        Shape of the array, or a list of shapes.
    dtype
        Data type of the array.
    w_stype
        Storage type of the weight.
    g_stype
        Storage type of the gradient.
    rtol, atol
        Relative and absolute tolerance; by default those of the data type.
    compare_states
        Whether states are compared too.
    ntensors
        Number of weights.

    >>> one, two = mx.optimizer.SGD(learning_rate=0.1), mx.optimizer.SGD(learning_rate=0.1)
    >>> mx.test_utils.compare_optimizer(one, two, (2, 3), "float32")
    """
    shapes = list(shape) if isinstance(shape, list) else [shape]
    if len(shapes) != ntensors:
        raise AssertionError(f"ntensors is {ntensors}, but {len(shapes)} shapes were given")
    weights = [_random_array(s, w_stype, dtype) for s in shapes]
    grads = [_random_array(s, g_stype, dtype) for s in shapes]
    dense = ([a.tostype("default") for a in arrays] for arrays in (weights, grads))
    weights1, states1 = _one_step(opt1, *dense, together=False)
    weights2, states2 = _one_step(opt2, weights, grads, together=isinstance(shape, list))
    if compare_states:
        compare_ndarray_tuple(tuple(states1), tuple(states2), rtol=rtol, atol=atol)
    compare_ndarray_tuple(tuple(weights1), tuple(weights2), rtol=rtol, atol=atol)


def _random_array(shape: tuple[int, ...], stype: str, dtype: Any) -> NDArray:
    dense = mx.nd.random.uniform(shape=shape).astype(dtype)
    return dense if stype == "default" else dense.tostype(stype)


def _one_step(
    opt: Any, weights: list[NDArray], grads: list[NDArray], together: bool
) -> tuple[list, list]:
    weights, grads = [w.copy() for w in weights], [g.copy() for g in grads]
    states = [opt.create_state_multi_precision(i, w) for i, w in enumerate(weights)]
    if together:
        opt.update_multi_precision(list(range(len(weights))), weights, grads, states)
    else:
        for i, (weight, grad, state) in enumerate(zip(weights, grads, states, strict=True)):
            opt.update_multi_precision(i, weight, grad, state)
    accelerator.synchronize_all()
    return weights, states
