"""MXNet's name for this module: `mxnet.numpy.multiarray` has all functions of `mx.np`."""

from __future__ import annotations

from typing import Any

from ..base import check_call, integer_types, numeric_types  # noqa: F401
from ..context import Context, current_context  # noqa: F401
from ..ndarray import NDArray, from_numpy  # noqa: F401
from ..util import set_module, wrap_np_binary_func, wrap_np_unary_func  # noqa: F401
from .array import ndarray  # noqa: F401


def __getattr__(name: str) -> Any:
    from .. import numpy

    try:
        return vars(numpy)[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
