"""Integer types of ONNX that MXNet lacks are widened."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ....error import FormatError
from .value import internal

__all__ = ["IntegerTypes"]

WIDER_TYPES = {
    np.dtype(narrow): np.dtype(wide)
    for narrow, wide in (
        ("int16", "int32"),
        ("uint16", "int32"),
        ("uint32", "int64"),
        ("uint64", "int64"),
    )
}
# Operators that may overflow the narrow type, where ONNX wraps around.
WRAPPING = {
    *("Add", "Sub", "Mul", "Neg", "Pow", "Sum", "Cast", "CastLike", "BitShift", "BitwiseNot"),
    *("ReduceSum", "ReduceProd", "CumSum", "MatMul", "Gemm"),
}


class IntegerTypes:
    """Widens types and arrays of one model, and warns once."""

    def __init__(self) -> None:
        self._names: set[str] = set()

    def widen_type(self, dtype: np.dtype) -> np.dtype:
        """Return the type in which MXNet stores numbers of a type."""
        wide = WIDER_TYPES.get(dtype)
        if wide is None:
            return dtype
        self._names.add(dtype.name)
        return wide

    def widen(self, array: np.ndarray, name: str) -> np.ndarray:
        """Return an array in a type of MXNet; values out of range raise an error."""
        wide = self.widen_type(array.dtype)
        if wide == array.dtype:
            return array
        if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(wide).max:
            raise FormatError(
                f"ONNX import: {name!r} has uint64 numbers beyond those of int64, the widest "
                f"integers of MXNet: {array.max()}."
            )
        return array.astype(wide)

    def wrap(self, output: Any, op_type: str, dtype: np.dtype | None) -> Any:
        """Return a node's symbol with its numbers wrapped around as in the narrow type."""
        if op_type not in WRAPPING or dtype not in WIDER_TYPES or dtype == np.uint64:
            return output
        limits = np.iinfo(dtype)
        mask, low = int(limits.max) - int(limits.min), int(limits.min)
        if low == 0:
            return internal._npi_bitwise_and_scalar(output, scalar=mask, is_int=True)
        return internal._npi_bitwise_and_scalar(output - low, scalar=mask, is_int=True) + low

    def warn(self) -> None:
        """Warn of the types that were widened, if any."""
        if self._names:
            pairs = [f"{n} as {WIDER_TYPES[np.dtype(n)].name}" for n in sorted(self._names)]
            warnings.warn(
                f"ONNX import: MXNet lacks some integer types of this model; it holds "
                f"{', '.join(pairs)}. Feed and read these types.",
                UserWarning,
                stacklevel=4,
            )
