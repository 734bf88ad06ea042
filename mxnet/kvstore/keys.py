"""Keys and values as users give them: one or lists, values for one device or for several."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..base import users_stacklevel
from ..error import InvalidType, InvalidValue, MXNetError
from ..ndarray import NDArray

Key = int | str


class KeyTypeError(InvalidType):
    """A key is neither str nor int, or a value is no array."""


def _key(key: Any) -> Key:
    if isinstance(key, bool) or not isinstance(key, str | int | np.integer):
        raise KeyTypeError(f"unexpected type for keys: {type(key).__name__}; keys are str or int")
    return key if isinstance(key, str) else int(key)


def _arrays(verb: str, key: Key, value: Any) -> list[NDArray]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    for one in values:
        if not isinstance(one, NDArray):
            raise KeyTypeError(
                f"{verb} of key {key} takes an NDArray or a list of them, got {type(one).__name__}"
            )
    if not values:
        raise MXNetError(f"{verb} of key {key} got no arrays.")
    return values


def dense_outputs(outputs: list[NDArray]) -> list[NDArray]:
    """Return the dense arrays among the outputs of a pull, with a warning if there are others."""
    dense = [out for out in outputs if out.stype == "default"]
    if len(dense) != len(outputs):
        warnings.warn(
            "non-default weights detected during kvstore pull. This call has been ignored. Please "
            "make sure to use kv.row_sparse_pull() or module.prepare() with row_ids.",
            stacklevel=users_stacklevel(),
        )
    return dense


def grouped(verb: str, key: Any, value: Any) -> Iterator[tuple[Key, list[NDArray]]]:
    """Yield each key with its arrays, one for each device.

    >>> a, b = mx.nd.ones(1), mx.nd.ones(1)
    >>> [(k, len(v)) for k, v in grouped("push", ["x", "y"], [[a, b], a])]
    [('x', 2), ('y', 1)]
    """
    if not isinstance(key, list | tuple):
        key = _key(key)
        return iter([(key, _arrays(verb, key, value))])
    keys = [_key(k) for k in key]
    if len({type(k) for k in keys}) > 1:
        raise InvalidValue(f"inconsistent types of keys: {key}; give all str or all int")
    if not isinstance(value, list | tuple) or len(value) != len(keys):
        count = len(value) if isinstance(value, list | tuple) else 1
        raise InvalidValue(
            f"{verb} got {len(keys)} keys but {count} values: give a list with an array, or a list "
            "of arrays, for each key."
        )
    return iter([(k, _arrays(verb, k, v)) for k, v in zip(keys, value, strict=True)])
