"""`CSRNDArray` and `RowSparseNDArray`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from ...error import InvalidValue, OutOfRange
from ...formats import params_file
from ...imperative.handle import wrap_plain
from ..ndarray import NDArray
from . import layout
from .base import BaseSparseNDArray, Sparse, make
from .fallback import warn_of_copy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...context import Context

_FULL = slice(None)


class CSRNDArray(BaseSparseNDArray):
    """A matrix in compressed rows: row i has the values from indptr[i] to indptr[i + 1].

    Parameters
    ----------
    handle
        Another array of the same kind, whose parts the new one shares.
    writable
        Accepted for compatibility, without effect.

    >>> x = mx.nd.sparse.csr_matrix(([7, 8], [2, 0], [0, 1, 2]), shape=(2, 3))
    >>> x.asnumpy()
    array([[0., 0., 7.],
           [8., 0., 0.]], dtype=float32)
    """

    __slots__ = ("_indptr",)

    _indptr: Tensor

    def _parts(self) -> tuple[Tensor, Tensor, Tensor]:
        return self._values, self._indices, self._indptr

    def _set(self, shape: Sequence[int], *parts: Tensor) -> None:
        self._shape = tuple(shape)
        self._values, self._indices, self._indptr = parts

    def _set_dense(self, dense: Tensor) -> None:
        self._set(dense.shape, *layout.csr_from_dense(dense))

    def _dense(self) -> Tensor:
        return layout.dense_from_csr(self._shape, *self._parts())

    def _stored(self) -> params_file.CSR:
        rows, columns = self._shape
        return params_file.CSR((rows, columns), self._indptr, self._indices, self._values)

    @property
    def stype(self) -> str:
        """The storage type: 'csr'."""
        return "csr"

    @property
    def indptr(self) -> NDArray:
        """A copy of the positions at which rows begin."""
        return wrap_plain(NDArray, self._indptr.clone(), self._ctx)

    def to_torch(self) -> Tensor:
        """Return a torch tensor of csr layout in the same memory."""
        return torch.sparse_csr_tensor(self._indptr, self._indices, self._values, self._shape)

    def check_format(self, full_check: bool = True) -> None:
        """Raise unless the parts fit together; `full_check` looks at each index too."""
        layout.check_csr(self._shape, *self._parts(), full_check)

    def asscipy(self) -> Any:
        """Return a scipy.sparse.csr_matrix with a copy of the parts."""
        from scipy.sparse import csr_matrix

        values, indices, indptr = (p.cpu().numpy().copy() for p in self._parts())
        return csr_matrix((values, indices, indptr), shape=self._shape, dtype=self.dtype)

    def __getitem__(self, key: Any) -> CSRNDArray:
        if isinstance(key, tuple):
            raise ValueError("Multi-dimension indexing is not supported")
        if isinstance(key, int):
            begin = key + self._shape[0] if key < 0 else key
            if not 0 <= begin < self._shape[0]:
                raise OutOfRange(f"A csr array of {self._shape[0]} rows has no row {key}.")
            key = slice(begin, begin + 1)
        if not isinstance(key, slice):
            raise ValueError(f"A csr array takes a row number or a slice of rows, not {key!r}.")
        if key == _FULL:
            return self
        if key.step not in (None, 1):
            raise ValueError("CSRNDArray only supports continuous slicing on axis 0")
        from . import slice as slice_function

        made = slice_function(self, begin=(key.start,), end=(key.stop,))
        assert isinstance(made, CSRNDArray)  # as steps of 1 are
        return made

    def _receive_sparse(self, found: Tensor, req: str) -> None:
        if found.layout is not torch.strided:
            found = found.to_dense()
        warn_of_copy("default", "csr")
        self._set_dense(found + self._dense() if req == "add" else found)


class RowSparseNDArray(BaseSparseNDArray):
    """Some rows of an array: row ``indices[i]`` is ``data[i]``, all others are zero.

    Parameters
    ----------
    handle
        Another array of the same kind, whose parts the new one shares.
    writable
        Accepted for compatibility, without effect.

    >>> x = mx.nd.sparse.row_sparse_array(([[7, 8]], [1]), shape=(3, 2))
    >>> x.asnumpy()
    array([[0., 0.],
           [7., 8.],
           [0., 0.]], dtype=float32)
    """

    __slots__ = ()

    def _parts(self) -> tuple[Tensor, Tensor]:
        return self._values, self._indices

    def _set(self, shape: Sequence[int], *parts: Tensor) -> None:
        self._shape = tuple(shape)
        self._values, self._indices = parts

    def _set_dense(self, dense: Tensor) -> None:
        self._set(dense.shape, *layout.rows_from_dense(dense))

    def _dense(self) -> Tensor:
        if layout.has_all_rows(self._shape, self._indices):
            return self._values
        return layout.dense_from_rows(self._shape, *self._parts())

    def _stored(self) -> params_file.RowSparse:
        return params_file.RowSparse(self._shape, self._indices, self._values)

    @property
    def stype(self) -> str:
        """The storage type: 'row_sparse'."""
        return "row_sparse"

    def to_torch(self) -> Tensor:
        """Return a torch tensor of coo layout with one sparse axis, in the same memory."""
        return torch.sparse_coo_tensor(self._indices[None], self._values, self._shape)

    def check_format(self, full_check: bool = True) -> None:
        """Raise unless the parts fit together; `full_check` looks at each index too."""
        layout.check_rows(self._shape, *self._parts(), full_check)

    def retain(self, *args: Any, **kwargs: Any) -> RowSparseNDArray:
        """Return an array with only the given rows."""
        from . import retain

        made = retain(self, *args, **kwargs)
        return cast("RowSparseNDArray", made)  # unless `out` is of another type

    def __getitem__(self, key: Any) -> RowSparseNDArray:
        if isinstance(key, tuple):
            raise ValueError("Multi-dimension indexing is not supported")
        if not isinstance(key, slice) or key != _FULL:
            raise InvalidValue(f"RowSparseNDArray only supports [:] for __getitem__, not {key!r}")
        return self

    def _fill(self, value: float) -> None:
        everything = self._values.new_full(self._shape, value)
        rows = torch.arange(self._shape[0], device=self._values.device)
        self._set(self._shape, everything, rows)

    def _receive_sparse(self, found: Tensor, req: str) -> None:
        if found.layout is torch.strided:
            warn_of_copy("default", "row_sparse")
            values, rows = layout.rows_from_dense(found)
        else:
            found = found.coalesce()
            values, rows = found.values(), found.indices()[0]
        if req == "add":
            values, rows = layout.sum_rows([self._values, values], [self._indices, rows])
        self._set(self._shape, values, rows)


def from_dense(cls: type[Sparse], dense: Tensor, ctx: Context | None = None) -> Sparse:
    """Return the sparse form of a dense tensor."""
    find = layout.csr_from_dense if cls is CSRNDArray else layout.rows_from_dense
    return make(cls, dense.shape, *find(dense), ctx=ctx)


def from_stored(record: params_file.CSR | params_file.RowSparse) -> BaseSparseNDArray:
    """Return the array of a record read from a file."""
    if isinstance(record, params_file.CSR):
        parts = (record.values, record.indices.long(), record.indptr.long())
        return make(CSRNDArray, record.shape, *parts)
    return make(RowSparseNDArray, record.shape, record.values, record.indices.long())
