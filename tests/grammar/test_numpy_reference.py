"""Operators match NumPy where MXNet 1.9.1 does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.grammar.calling import arrays_of, call
from tests.grammar.conftest import sampled
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row

NumPyFunction = Callable[..., Any]

# The same name and arguments.
PLAIN = {
    "absolute", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "ceil",
    "cos", "cosh", "degrees", "exp", "expm1", "fix", "floor", "log", "log10", "log1p", "log2",
    "negative", "radians", "reciprocal", "sin", "sinh", "sqrt", "square", "tan", "tanh",
    "trunc", "isnan", "isinf", "isposinf", "isneginf", "isfinite", "logical_not", "bitwise_not",
    "around", "add", "subtract", "multiply", "true_divide", "power", "hypot", "arctan2",
    "bitwise_and", "bitwise_or", "bitwise_xor", "equal", "not_equal", "greater",
    "greater_equal", "less", "less_equal", "sum", "prod", "mean", "std", "var", "max", "min",
    "all", "any", "argmax", "argmin", "transpose", "squeeze", "moveaxis", "roll", "flip",
    "rot90", "broadcast_to", "copy", "diag", "diagflat", "diagonal", "trace", "tril", "where",
    "unique", "diff", "polyval", "dot", "matmul", "eye", "hanning", "hamming", "blackman",
    "nan_to_num",
}  # fmt: skip

# Operators that spell an argument in another way.
OTHERS: dict[str, NumPyFunction] = {
    "_np_reshape": lambda a, newshape: np.reshape(a, newshape),
    "_npi_concatenate": lambda *data, axis: np.concatenate(data, axis),
    "_npi_stack": lambda *data, axis=0: np.stack(data, axis),
    "_npi_vstack": lambda *data: np.vstack(data),
    "_npi_hstack": lambda *data: np.hstack(data),
    "_npi_dstack": lambda *data: np.dstack(data),
    "_npi_column_stack": lambda *data: np.column_stack(data),
    "_npi_tensordot_int_axes": lambda a, b, axes: np.tensordot(a, b, axes),
    "_npi_einsum": lambda *data, subscripts, optimize=0: np.einsum(subscripts, *data),
    "_npi_pad": lambda data, pad_width, mode="constant", constant_value=0: np.pad(
        data, pad_width, mode, **({"constant_values": constant_value} if mode == "constant" else {})
    ),
    "_npi_percentile": lambda a, q=None, q_scalar=None, interpolation="linear", **more: (
        np.percentile(a, q_scalar if q is None else q, method=interpolation, **more)
    ),
    "_npi_cholesky": np.linalg.cholesky,
    "_npi_eigvalsh": np.linalg.eigvalsh,
    "_npi_pinv_scalar_rcond": np.linalg.pinv,
    "_npi_tensorinv": np.linalg.tensorinv,
    "_npi_indices": lambda dimensions, dtype="int32": np.indices(dimensions, dtype),
    "_npi_logspace": np.logspace,
    "_npx_nonzero": lambda x: np.argwhere(np.atleast_1d(x)),
}


def numpy_function_of(name: str) -> NumPyFunction | None:
    """Return NumPy's function of an operator."""
    short = name.removeprefix("_npi_").removeprefix("_np_")
    return OTHERS.get(name) or (getattr(np, short) if short in PLAIN else None)


def is_comparable(row: Row) -> bool:
    """Return whether NumPy computes in the operator's dtype: MXNet keeps floats and int64."""
    arrays = row.arrays()
    kinds = {"float32", "float64", "bool"} if arrays else {str(row.attrs.get("dtype", "float32"))}
    kinds = kinds if arrays else kinds & {"float32", "float64"}
    odd = any(np.isnan(a).any() or not a.size for a in arrays if a.dtype.kind == "f")
    return bool(kinds) and not odd and all(str(a.dtype) in kinds for a in arrays)


NUMPY_KEYS = {
    row.key
    for (family, op), rows in sampled().items()
    if family.startswith("numpy_") and numpy_function_of(op) is not None
    for row in rows
    if is_comparable(row) and (not row.inputs or "dtype" not in row.attrs)
}


@for_rows(lambda row: row.key in NUMPY_KEYS)
@pytest.mark.filterwarnings("ignore")
def test_results_match_numpy(family: str, rows: list[Row]) -> None:
    """Values are compared, dtypes are not."""

    def check(row: Row) -> None:
        attrs = {k: v for k, v in row.attrs.items() if k != "dtype"}
        wanted = numpy_function_of(row.op)(*row.arrays(), **attrs)
        wanted = wanted if isinstance(wanted, tuple | list) else [wanted]
        for given, right in zip(call(row, arrays_of(row)), wanted, strict=True):
            np.testing.assert_allclose(given.asnumpy(), right, rtol=2e-3, atol=1e-4)

    check_all(rows, check)
