"""Saving and loading arrays, and creation functions with support for sparse arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..base import is_np_shape
from ..formats import params_file, safetensors_file
from ..runtime.array import plain, wrap_plain
from .creation import array, empty, zeros
from .ndarray import NDArray

if TYPE_CHECKING:
    from torch import Tensor

    from .sparse.arrays import BaseSparseNDArray

__all__ = ["array", "empty", "load", "load_frombuffer", "loads", "save", "zeros"]


def _to_stored(value: Any) -> Any:
    if not isinstance(value, NDArray):
        raise TypeError(
            f"save only accepts NDArrays, a list or a dict of them, not {type(value)}. Wrap it: "
            "mx.nd.array(value)."
        )
    if value.stype != "default":
        return cast("BaseSparseNDArray", value)._stored()
    return plain(value)


def _from_stored(value: Any) -> NDArray:
    if isinstance(value, params_file.RowSparse | params_file.CSR):
        from .sparse import from_stored

        return from_stored(value)
    return wrap_plain(NDArray, value)


def _arrays(read: Any) -> list[NDArray] | dict[str, NDArray]:
    if isinstance(read, dict):
        return {name: _from_stored(v) for name, v in read.items()}
    return [_from_stored(v) for v in read]


def save(fname: Any, data: Any) -> None:
    """Save an array, a list or a dict of arrays in MXNet's binary format.

    A file name ending in ``.safetensors`` selects that format, for a dict of dense arrays. Saving
    is atomic; files in MXNet's format have checksums that `load` verifies.

    Parameters
    ----------
    fname
        Path of the file.
    data
        An array, a list of arrays, or a dict of arrays by name.

    >>> mx.nd.save("weights.params", {"w": mx.nd.ones(2)})
    >>> mx.nd.load("weights.params")["w"].shape
    (2,)
    """
    save_with_info(fname, data, None)


def save_with_info(fname: Any, data: Any, info: Mapping[str, Any] | None) -> None:
    """Save arrays like `save`, with JSON data for `params_file.read_info`."""
    if isinstance(data, NDArray):
        data = [data]
    if isinstance(data, Mapping):
        if not all(isinstance(name, str) for name in data):
            raise TypeError("save only accept dict str->NDArray or list of NDArray")
        stored = {name: _to_stored(v) for name, v in data.items()}
    elif isinstance(data, list | tuple):
        stored = [_to_stored(v) for v in data]
    else:
        raise ValueError("data needs to either be a NDArray, dict of str, NDArray pairs or a list")
    if safetensors_file.is_safetensors(fname):
        safetensors_file.write(fname, cast("dict[str, Tensor]", stored))  # raises for a list
        return
    params_file.write(fname, stored, np_shape=is_np_shape(), info=info)


def load(fname: Any) -> list[NDArray] | dict[str, NDArray]:
    """Load a file of `save` or MXNet: a list, or a dict if the arrays have names.

    Files ending in ``.safetensors`` are read in that format.

    Parameters
    ----------
    fname
        Path of the file.

    >>> mx.nd.save("one.params", [mx.nd.ones(2)])
    >>> mx.nd.load("one.params")[0].shape
    (2,)
    """
    if safetensors_file.is_safetensors(fname):
        return _arrays(safetensors_file.read(fname))
    return _arrays(params_file.read(fname))


def load_frombuffer(buf: bytes) -> list[NDArray] | dict[str, NDArray]:
    """Load arrays from the bytes of a ``.params`` file.

    Parameters
    ----------
    buf
        The bytes.

    >>> mx.nd.save("one.params", [mx.nd.ones(2)])
    >>> with open("one.params", "rb") as file:
    ...     mx.nd.load_frombuffer(file.read())[0].shape
    (2,)
    """
    return _arrays(params_file.loads(buf))


loads = load_frombuffer
