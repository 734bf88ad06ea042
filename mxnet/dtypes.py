"""Table of data types: MXNet's name and code, torch's dtype, NumPy's type."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from .error import DTypeError, did_you_mean

# NumPy has no bfloat16; MXNet represents its bits by this structured type.
bfloat16 = np.dtype([("bfloat16", np.uint16)])


class DTypeRow(NamedTuple):
    """A data type in MXNet, torch and NumPy."""

    name: str
    code: int
    torch: torch.dtype
    numpy: Any
    size: int


TABLE = (
    DTypeRow("float32", 0, torch.float32, np.float32, 4),
    DTypeRow("float64", 1, torch.float64, np.float64, 8),
    DTypeRow("float16", 2, torch.float16, np.float16, 2),
    DTypeRow("uint8", 3, torch.uint8, np.uint8, 1),
    DTypeRow("int32", 4, torch.int32, np.int32, 4),
    DTypeRow("int8", 5, torch.int8, np.int8, 1),
    DTypeRow("int64", 6, torch.int64, np.int64, 8),
    DTypeRow("bool", 7, torch.bool, np.bool_, 1),
    DTypeRow("bfloat16", 12, torch.bfloat16, bfloat16, 2),
)

BY_NAME = {row.name: row for row in TABLE}
BY_CODE = {row.code: row for row in TABLE}
BY_TORCH = {row.torch: row for row in TABLE}
_TORCH_BY_NAME = {row.name: row.torch for row in TABLE}
_NUMPY_BY_TORCH = {row.torch: row.numpy for row in TABLE}
_NAME_BY_TORCH = {row.torch: row.name for row in TABLE}
_TORCH_BY_KEY: dict[Any, torch.dtype] = {
    **_TORCH_BY_NAME,
    **{row.torch: row.torch for row in TABLE},
    **{row.numpy: row.torch for row in TABLE},
    **{np.dtype(row.numpy): row.torch for row in TABLE},
    float: torch.float64,
    int: torch.int64,
    bool: torch.bool,
}


def to_torch(dtype: Any) -> torch.dtype:
    """Return the torch dtype for any spelling of a data type; ``None`` is float32.

    >>> to_torch("float16"), to_torch(np.int32)
    (torch.float16, torch.int32)
    """
    if dtype is None:
        return torch.float32
    try:
        return _TORCH_BY_KEY[dtype]
    except (KeyError, TypeError):
        pass
    if not isinstance(dtype, type) and hasattr(dtype, "dtype"):  # the type of an array
        return to_torch(dtype.dtype)
    try:
        return _TORCH_BY_KEY[np.dtype(dtype)]
    except (KeyError, TypeError, ValueError):
        raise DTypeError(
            f"data type {dtype!r} not understood: MXNet's types are {', '.join(BY_NAME)}. "
            f"{did_you_mean(str(dtype), BY_NAME)}".rstrip()
        ) from None


def to_numpy(dtype: torch.dtype) -> Any:
    """Return the NumPy scalar type of a torch dtype.

    >>> to_numpy(torch.int8)
    <class 'numpy.int8'>
    """
    return _NUMPY_BY_TORCH[dtype]


def is_bfloat16(dtype: np.dtype) -> bool:
    """Return whether a NumPy type is bfloat16: MXNet's pair of bytes, or that of ``ml_dtypes``.

    >>> is_bfloat16(bfloat16), is_bfloat16(np.dtype("uint16"))
    (True, False)
    """
    return dtype == bfloat16 or dtype.name == "bfloat16"


def from_numpy(values: np.ndarray) -> torch.Tensor:
    """Return a tensor over the memory of a NumPy array, which may be of a type for bfloat16.

    Arrays with negative strides, which torch does not support, and read-only arrays are copied.

    >>> from_numpy(np.array([0x3F80], np.uint16).view(bfloat16))
    tensor([1.], dtype=torch.bfloat16)
    """
    if min(values.strides, default=0) < 0:
        if values.flags.c_contiguous:  # only axes of at most one element are flipped
            strides = tuple(abs(stride) for stride in values.strides)
            values = np.lib.stride_tricks.as_strided(values, strides=strides)
        else:
            values = values.copy()
    if not values.flags.writeable:
        values = values.copy()
    if is_bfloat16(values.dtype):
        return torch.from_numpy(values.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(values)


def to_bytes(tensor: torch.Tensor) -> torch.Tensor:
    """Return the content as a vector of bytes, without a copy if contiguous.

    >>> to_bytes(torch.tensor([1, 256], dtype=torch.int16)).tolist()
    [1, 0, 0, 1]
    """
    compact = tensor.detach().cpu().contiguous()
    # With at most one element any stride is contiguous, but bytes need stride 1.
    return compact.as_strided((compact.numel(),), (1,)).view(torch.uint8)


def to_name(dtype: Any) -> str:
    """Return MXNet's name of a data type given in any spelling.

    >>> to_name(np.float64), to_name(torch.uint8)
    ('float64', 'uint8')
    """
    return _NAME_BY_TORCH[to_torch(dtype)]
