"""MXNet's module of NumPy's constants and data types."""

from __future__ import annotations

import numpy as onp

__all__ = [
    "NAN",
    "NINF",
    "NZERO",
    "PINF",
    "PZERO",
    "_STR_2_DTYPE_",
    "NaN",
    "bool",
    "bool_",
    "e",
    "finfo",
    "float16",
    "float32",
    "float64",
    "iinfo",
    "inf",
    "int8",
    "int32",
    "int64",
    "nan",
    "newaxis",
    "pi",
    "uint8",
]

bool = bool
bool_ = onp.bool_
float16, float32, float64 = onp.float16, onp.float32, onp.float64
uint8, int8, int32, int64 = onp.uint8, onp.int8, onp.int32, onp.int64
finfo, iinfo = onp.finfo, onp.iinfo
pi, e, inf, nan = onp.pi, onp.e, onp.inf, onp.nan
PZERO, NZERO, PINF, NINF = 0.0, -0.0, onp.inf, -onp.inf
NAN = NaN = onp.nan
newaxis = None
_STR_2_DTYPE_ = {
    "float16": float16,
    "float32": float32,
    "float64": float64,
    "float": float64,
    "uint8": uint8,
    "int8": int8,
    "int32": int32,
    "int64": int64,
    "int": int64,
    "bool": bool,
    "bool_": bool_,
    "None": None,
}
