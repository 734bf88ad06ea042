"""`mx.nd.sparse`: row_sparse and csr arrays. Its operator functions are put here by `face`.

`layout` knows how parts become dense and back, `arrays` the classes, `dispatch` what an operator
does with them; `maths`, `selection`, `products` and `updates` hold the sparse kernels.
"""

from __future__ import annotations

from typing import Any

from ...base import integer_types, numeric_types
from ...imperative.apply import apply
from ...imperative.handle import current
from ...ops import registry
from ..ndarray import NDArray
from . import maths, products, selection, updates
from .arrays import CSRNDArray, RowSparseNDArray, from_stored
from .base import BaseSparseNDArray, NotSupportedForSparseNDArray
from .creation import array, csr_matrix, empty, row_sparse_array, zeros
from .dispatch import to_storage
from .operator_overloads import add, divide, multiply, subtract

__all__ = [
    "BaseSparseNDArray",
    "CSRNDArray",
    "RowSparseNDArray",
    "add",
    "array",
    "cast_storage",
    "csr_matrix",
    "divide",
    "empty",
    "multiply",
    "row_sparse_array",
    "subtract",
    "zeros",
]


def cast_storage(data: NDArray, stype: str, out: NDArray | None = None, **kwargs: Any) -> NDArray:
    """Convert an array to a storage type: 'default', 'row_sparse' or 'csr'.

    >>> mx.nd.sparse.cast_storage(mx.nd.array([[0, 1], [0, 0]]), 'row_sparse').indices.asnumpy()
    array([0])
    """
    op = registry.get("cast_storage")
    wanted = op.parse({"stype": stype})["stype"]
    if data.stype != "default" or wanted == "default" or out is not None:
        return apply(op, (data,), {"stype": stype}, out, cls=NDArray)
    if wanted == "csr" and data.ndim != 2:
        raise ValueError(
            "To convert to a CSR, the NDArray should be 2 Dimensional. Current shape is "
            f"{data.shape}"
        )
    return to_storage(current(data), wanted, data._ctx)


def _ndarray_cls(handle: NDArray, writable: bool = True, stype: int = -1) -> NDArray:
    """Return an array, of the class that its storage type tells, around the same parts."""
    return type(handle)(handle, writable)
