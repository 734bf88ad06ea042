"""How far apart two numbers may be, by their data type."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np
import torch

from .. import dtypes

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
    on_gpu = getattr(getattr(dat, "ctx", None), "device_type", "cpu") == "gpu"
    if dtype == np.float32 and on_gpu and torch.backends.cuda.matmul.allow_tf32:
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
    if isinstance(tol, Number):
        return tol
    dtype = effective_dtype(dat)
    default = default_tol.get(dtype, 0)
    return default if tol is None else tol.get(dtype, default)


def get_tols(x: Any, y: Any, rtol: Tolerance, atol: Tolerance) -> tuple[float, float]:
    """Return the tolerances with which to compare: those of the less exact of the two.

    Parameters
    ----------
    x
        The first array.
    y
        The second array.
    rtol
        Relative tolerance; by default that of the data type.
    atol
        Absolute tolerance; by default that of the data type.

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
    """Return which part of the elements may differ: the one given, or none.

    Parameters
    ----------
    etol
        Fraction of the elements that may differ.

    >>> mx.test_utils.get_etol(0.5)
    0.5
    """
    return 0 if etol is None else etol
