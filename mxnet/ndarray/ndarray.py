"""MXNet's spelling of this place: `mxnet.ndarray.ndarray` has the class and its basic functions."""

from __future__ import annotations

from .. import dtypes
from ..base import integer_types, mx_real_t, numeric_types
from .core import NDArray
from .creation import *  # noqa: F403 (MXNet's module shows them all)
from .creation import __all__ as _creation
from .functions import *  # noqa: F403
from .functions import __all__ as _functions

py_slice = slice
_DTYPE_NP_TO_MX = {None: -1, **{row.numpy: row.code for row in dtypes.TABLE}}
_DTYPE_MX_TO_NP = {-1: None, **{row.code: row.numpy for row in dtypes.TABLE}}
_GRAD_REQ_MAP = {"null": 0, "write": 1, "add": 3}
_STORAGE_TYPE_STR_TO_ID = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
_STORAGE_TYPE_ID_TO_STR = {v: k for k, v in _STORAGE_TYPE_STR_TO_ID.items()}

__all__ = [
    "NDArray",
    "integer_types",
    "mx_real_t",
    "numeric_types",
    *_creation,
    *_functions,
]
