"""What the matrices of linear algebra must be."""

from __future__ import annotations

import torch
from torch import Tensor

from ...dtypes import to_name
from ...error import DTypeError, ShapeError
from ..families import check_same_dtype

SOLVABLE = (torch.float32, torch.float64)  # what LAPACK takes


def check_float(name: str, a: Tensor) -> None:
    """Refuse integers."""
    if not a.is_floating_point():
        raise DTypeError(
            f"{name}: matrices must be of floating point, but got {to_name(a.dtype)}. "
            "Convert it: x.astype('float32')."
        )


def check_square(name: str, a: Tensor) -> None:
    """Refuse what LAPACK cannot take: other types than float32 and float64, non-square matrices."""
    if a.dtype not in SOLVABLE:
        raise DTypeError(
            f"{name} only supports 32-bit and 64-bit floating point, but got {to_name(a.dtype)}. "
            "Convert it: x.astype('float32')."
        )
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise ShapeError(f"{name} needs square matrices, but got an array of {list(a.shape)}.")


def check_product(name: str, a: Tensor, b: Tensor) -> None:
    """Refuse two arrays whose matrices cannot come in pairs."""
    if a.dtype is not b.dtype:
        check_same_dtype(name, a, b)
    check_float(name, a)
    if a.ndim < 2 or a.ndim != b.ndim:
        raise ShapeError(
            f"{name}: both inputs must have the same number of dimensions, at least 2, "
            f"but got {list(a.shape)} and {list(b.shape)}."
        )
