"""Files of arrays: `npx.save` and `npx.load`."""

from __future__ import annotations

from typing import Any

from ..base import (  # noqa: F401 (MXNet shows them here)
    c_handle_array,
    c_str,
    c_str_array,
    check_call,
    py_str,
    string_types,
)
from ..ndarray.utils import load as load_legacy
from ..ndarray.utils import save as save_legacy
from ..numpy import ndarray
from ..util import is_np_array, is_np_shape

__all__ = ["load", "save"]


def save(file: str, arr: Any) -> None:
    """Save an array, a list of arrays, or a dict of arrays to a file.

    NumPy semantics must be on (`npx.set_np()`), so that scalars and sizes of 0 are saved.

    Parameters
    ----------
    file
        Path of the file.
    arr
        An array, a list of arrays, or a dict of arrays by name.

    >>> mx.npx.set_np()
    >>> mx.npx.save("one.params", [mx.np.ones(2)])
    >>> mx.npx.load("one.params")[0].shape
    (2,)
    >>> mx.npx.reset_np()
    """
    if not (is_np_shape() and is_np_array()):
        raise ValueError(
            "Cannot save `mxnet.numpy.ndarray` in legacy mode. Please activate numpy semantics by "
            "calling `npx.set_np()` in the global scope before calling this function."
        )
    if isinstance(arr, ndarray):
        arr = [arr]
    if isinstance(arr, dict):
        if not all(isinstance(k, str) and isinstance(v, ndarray) for k, v in arr.items()):
            raise TypeError("Only accept dict str->ndarray or list of ndarrays")
        save_legacy(file, {k: v.as_nd_ndarray() for k, v in arr.items()})
    elif isinstance(arr, list | tuple) and all(isinstance(v, ndarray) for v in arr):
        save_legacy(file, [v.as_nd_ndarray() for v in arr])
    else:
        raise ValueError("data needs to either be a ndarray, dict of str, ndarray pairs or a list")


def load(file: str) -> Any:
    """Load the arrays of a file: a list, or a dict by name.

    NumPy semantics must be on (`npx.set_np()`).

    Parameters
    ----------
    file
        Path of the file.

    >>> mx.npx.set_np()
    >>> mx.npx.save("one.params", {"w": mx.np.ones(2)})
    >>> mx.npx.load("one.params")["w"].shape
    (2,)
    >>> mx.npx.reset_np()
    """
    if not (is_np_shape() and is_np_array()):
        raise ValueError(
            "Cannot load `mxnet.numpy.ndarray` in legacy mode. Please activate numpy semantics by "
            "calling `npx.set_np()` in the global scope before calling this function."
        )
    stored = load_legacy(file)
    if isinstance(stored, dict):
        return {k: v.as_np_ndarray() for k, v in stored.items()}
    return [v.as_np_ndarray() for v in stored]
