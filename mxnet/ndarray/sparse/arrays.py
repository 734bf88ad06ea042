"""`CSRNDArray` and `RowSparseNDArray`: arrays that store only some of their elements.

They have no dense tensor: `_data` is None. In a recorded graph a sparse array is represented by
`_ghost`, a tensor of its dense shape: for a leaf an expanded tensor without memory that only
carries gradients, for a result the dense form.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from ... import accelerator, dtypes
from ..._process import env
from ...base import users_stacklevel
from ...context import Context, context_of, torch_device
from ...error import InvalidValue, MXNetError, OutOfRange, ShapeError
from ...formats import params_file
from ...ops.attributes import to_string
from ...runtime.apply import stored_context
from ...runtime.array import new_object, plain, set_empty, wrap_plain
from ...runtime.gradients import Gradient, add_leaf, check_req
from ...runtime.recording import STAND_IN, UNKNOWN, Member, Session, graph_tensor, state
from ..ndarray import NDArray, from_host
from ..printing import label
from . import layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Self

    from ...context import Context

# Warnings about dense fallbacks, each issued once.
_warned: set[str] = set()
_ADVICE = (
    "The result is correct, but uses the memory and time of dense arrays. Set the environment "
    "variable MXNET_STORAGE_FALLBACK_LOG_VERBOSE to 0 to suppress this warning."
)


def _warn_once(what: str) -> None:
    if what in _warned or not env.get("MXNET_STORAGE_FALLBACK_LOG_VERBOSE"):
        return
    _warned.add(what)
    warnings.warn(f"{what}\n{_ADVICE}", UserWarning, stacklevel=users_stacklevel())


def warn_of_operator(
    name: str, inputs: Sequence[str], outputs: Sequence[str], attrs: Mapping[str, Any]
) -> None:
    """Warn that an operator has no kernel for these storage types."""
    params = ", ".join(f"{k}={to_string(v)}" for k, v in attrs.items())
    _warn_once(
        f"Storage type fallback detected: operator = {name}, input storage types = "
        f"[{', '.join(inputs)}], output storage types = [{', '.join(outputs)}], "
        f"params = {{{params}}}."
    )


def warn_of_copy(source: str, target: str) -> None:
    """Warn that a copy between storage types creates a temporary array."""
    _warn_once(
        f"Storage fallback detected: copy from {source} storage type to {target} storage type."
    )


_FULL = slice(None)
Sparse = TypeVar("Sparse", bound="BaseSparseNDArray")


class NotSupportedForSparseNDArray(MXNetError):
    """Raised if a method of dense arrays is called on a sparse one."""

    def __init__(self, function: Any, alias: str | None = None, *args: Any) -> None:
        name, kinds = function.__name__, ", ".join(str(type(a)) for a in args)
        hint = f" Use {alias} instead." if alias else " Convert it: x.tostype('default')."
        super().__init__(
            f"Function {name} with arguments ({kinds}) is not supported for SparseNDArray and only "
            f"available in NDArray.{hint}"
        )


class BaseSparseNDArray(NDArray):
    """Base class of csr and row_sparse arrays.

    Parameters
    ----------
    handle
        An array of the same class whose components the new one shares.
    writable
        Accepted for compatibility; has no effect.

    >>> isinstance(mx.nd.sparse.zeros("csr", (2, 2)), mx.nd.sparse.BaseSparseNDArray)
    True
    """

    __slots__ = ("_indices", "_shape", "_values")

    _indices: Tensor
    _shape: tuple[int, ...]
    _values: Tensor

    @property
    def _ghost(self) -> Tensor | None:
        """The tensor that represents the array in torch's graph."""
        return graph_tensor(self)

    @_ghost.setter
    def _ghost(self, tensor: Tensor | None) -> None:
        if tensor is None:
            self._member = None
        else:
            session = state.session or (None if tensor.is_leaf else Session())
            self._member = Member(tensor, session, UNKNOWN, STAND_IN)

    @property
    def _num_aux(self) -> int:
        return len(self._parts()) - 1

    @property
    def _aux_types(self) -> list[type]:
        return [np.int64] * self._num_aux

    def __init__(self, handle: BaseSparseNDArray | None, writable: bool = True) -> None:
        if handle is None:  # empty, until __setstate__ fills it
            return
        if type(handle) is not type(self):
            raise TypeError(
                f"{type(self).__name__} takes another {type(self).__name__}; create one with "
                "mx.nd.sparse.csr_matrix or mx.nd.sparse.row_sparse_array."
            )
        self._set(handle._shape, *handle._parts())
        set_empty(self)
        self._ctx = handle._ctx

    # -- parts --------------------------------------------------------------------------------

    def _parts(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _set(self, shape: Sequence[int], *parts: Tensor) -> None:
        raise NotImplementedError

    def _set_dense(self, dense: Tensor) -> None:
        raise NotImplementedError

    def _dense(self) -> Tensor:
        """Return the dense form, read-only: it may share memory with the values."""
        raise NotImplementedError

    def _like(self, values: Tensor) -> Self:
        return make(type(self), self._shape, values, *self._parts()[1:], ctx=self._ctx)

    def _stored(self) -> params_file.CSR | params_file.RowSparse:
        raise NotImplementedError

    # -- facts --------------------------------------------------------------------------------

    @property
    def handle(self) -> Tensor:
        """A sparse torch tensor on the same memory."""
        return self.to_torch()

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return self._shape

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements, stored or not."""
        return math.prod(self._shape)

    @property
    def dtype(self) -> Any:
        """The data type of the values, as NumPy's scalar type."""
        return dtypes.to_numpy(self._values.dtype)

    @property
    def context(self) -> Context:
        """The device that the array lives on."""
        return self._ctx or context_of(self._values)

    ctx = context

    @property
    def data(self) -> NDArray:
        """A copy of the stored values."""
        return wrap_plain(NDArray, self._values.clone(), self._ctx)

    @property
    def indices(self) -> NDArray:
        """A copy of the indices: the columns of a csr array, the rows of a row_sparse one."""
        return wrap_plain(NDArray, self._indices.clone(), self._ctx)

    def check_format(self, full_check: bool = True) -> None:
        """Raise unless the components are consistent; `full_check` checks each index too."""
        raise NotImplementedError

    # -- to and from elsewhere ----------------------------------------------------------------

    def asnumpy(self) -> np.ndarray:
        """Return the dense form as a NumPy array."""
        return wrap_plain(NDArray, self._dense()).asnumpy()

    def tolist(self) -> list:
        """Return the dense form as nested Python lists."""
        return self._dense().tolist()

    def todense(self) -> NDArray:
        """Return the dense form."""
        return self.tostype("default")

    def wait_to_read(self) -> None:
        """Wait until pending work on this array is done."""
        accelerator.synchronize(self._values.device)

    wait_to_write = wait_to_read

    def astype(self, dtype: Any, copy: bool = True) -> Self:
        """Return the array in another data type; without `copy` perhaps the array itself."""
        target_dtype = dtypes.to_torch(dtype if dtype is not None else "float32")
        if not copy and self._values.dtype is target_dtype:
            return self
        return self._like(self._values.to(target_dtype, copy=True))

    def tostype(self, stype: str) -> NDArray:
        """Return the array in a storage type: its own or 'default'."""
        from . import cast_storage

        if stype in ("csr", "row_sparse") and stype != self.stype:
            raise ValueError(f"cast_storage from {self.stype} to {stype} is not supported")
        return cast_storage(self, stype)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into an array of the same storage type, a dense array, or to a context."""
        if isinstance(other, Context):
            return self._copied_to(other)
        if not isinstance(other, NDArray):
            raise TypeError(f"copyto does not support type {type(other)}")
        if other is self:
            return other
        self._check_shape(other)
        if other.stype == "default":
            warn_of_copy(self.stype, "default")
            other[:] = wrap_plain(NDArray, self._dense())
            return other
        if not isinstance(other, BaseSparseNDArray) or other.stype != self.stype:
            raise TypeError(f"copyto does not support destination NDArray stype {other.stype}")
        device, dtype = other._values.device, other._values.dtype
        values, *indices = (p.to(device, copy=True) for p in self._parts())
        other._set(self._shape, values.to(dtype), *indices)
        return other

    def _copied_to(self, ctx: Context) -> Self:
        device = torch_device(ctx)
        parts = [p.clone() if p.device == device else p.to(device) for p in self._parts()]
        return make(type(self), self._shape, *parts, ctx=stored_context(ctx))

    def _check_shape(self, other: NDArray) -> None:
        if other.shape != self._shape:
            raise ShapeError(
                f"Shape inconsistent: a {self.stype} array of shape {self._shape} cannot be copied "
                f"to or from one of shape {other.shape}."
            )

    def _take_dense(self, dense: Tensor) -> None:
        """Assign a dense tensor, converted to this array's dtype and device."""
        self._set_dense(dense.detach().to(self._values.device, self._values.dtype))

    def _receive_copy(self, source: NDArray) -> None:
        if isinstance(source, BaseSparseNDArray):
            source.copyto(self)
            return
        self._check_shape(source)
        warn_of_copy("default", self.stype)
        self._take_dense(plain(source))

    def __setitem__(self, key: Any, value: Any) -> None:
        name = type(self).__name__
        if not isinstance(key, slice):
            raise TypeError(f"{name} only supports [:] for assignment")
        if key != _FULL:
            raise ValueError(f"Assignment with slice for {name} is not implemented: use [:].")
        if isinstance(value, NDArray):
            self._receive_copy(value)
        elif isinstance(value, np.ndarray):
            self._receive_copy(wrap_plain(NDArray, from_host(value)))
        elif isinstance(value, int | float | np.generic):
            self._fill(value.item() if isinstance(value, np.generic) else value)
        else:
            raise TypeError(f"type {type(value)} not supported: assign an array.")

    def _fill(self, value: float) -> None:
        raise ValueError(f"Assigning numeric types to {type(self).__name__} is not possible.")

    # -- unsupported methods -------------------------------------------------------------

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Not supported: sparse arrays cannot be reshaped."""
        raise NotSupportedForSparseNDArray(self.reshape, None, *shape)

    def _at(self, idx: Any) -> Any:
        raise NotSupportedForSparseNDArray(self._at, "x[i:i + 1] of a csr array", idx)

    def _slice(self, start: Any, stop: Any) -> Any:
        raise NotSupportedForSparseNDArray(self._slice, "x[start:stop] of a csr array", start, stop)

    def as_np_ndarray(self) -> NDArray:
        """Not supported: `mx.np` has no sparse arrays."""
        raise ValueError(f"cannot convert ndarray of stype {self.stype} to numpy ndarray")

    def _densified(self) -> Tensor:
        """Return the dense form for code without sparse support, and warn of the copy."""
        warn_of_copy(self.stype, "default")
        return self._dense()

    # -- gradients ----------------------------------------------------------------------------

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Allocate a gradient array, by default of this storage type; the array becomes a leaf."""
        self._attach(grad_req, None, stype)

    def _attach(self, req: str, target: NDArray | None, stype: str | None) -> None:
        from .creation import zeros

        if target is None:
            kind = stype or self.stype
            target = zeros(kind, self._shape, ctx=self.context, dtype=self.dtype)
        record = Gradient(target, check_req(req))
        self._grad, self._member = record, None
        if req == "null":
            return
        if not self._values.dtype.is_floating_point:
            raise MXNetError(
                f"attach_grad: an array of {dtypes.to_name(self._values.dtype)} has no gradient; "
                "only floating-point arrays do. Convert it: x.astype('float32')."
            )
        leaf = self._values.new_zeros(()).expand(self._shape).requires_grad_()
        add_leaf(self, leaf, record)

    def detach(self) -> Self:
        """Return an array with the same components, detached from the recorded graph."""
        return make(type(self), self._shape, *self._parts(), ctx=self._ctx)

    def _receive_sparse(self, gradient: Tensor, req: str) -> None:
        """Store a gradient from torch, sparse or dense."""
        raise NotImplementedError

    # -- the rest -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"\n{label(self)}"

    def _repr_html_(self) -> str:
        return f"<pre>{label(self).replace('<', '&lt;')}</pre>"

    def __bool__(self) -> bool:
        if self.size == 1:
            return bool(self._dense().item())
        raise ValueError("The truth value of an NDArray with multiple elements is ambiguous.")

    __hash__ = object.__hash__

    def __contains__(self, value: Any) -> bool:
        return bool((self._dense() == value).any())

    def __getstate__(self) -> dict[str, Any]:
        """Return what MXNet pickles: the array as a record of a params file."""
        ctx = self.context
        record = params_file.dump_record(self._stored(), (ctx.device_typeid, ctx.device_id))
        return {"handle": bytearray(record)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled array; one from a missing GPU is restored on the CPU."""
        stored, device = params_file.load_record(state["handle"], "pickled array")
        ctx = Context(Context.devtype2str.get(device[0], "cpu"), device[1])
        try:
            torch_device(ctx)
        except MXNetError:
            ctx = Context("cpu", 0)
        self.__init__(from_stored(cast("Any", stored))._copied_to(ctx))

    def __deepcopy__(self, memo: dict) -> Self:
        copied = self._copied_to(self.context)
        if self._grad is not None:
            copied._attach(self._grad.req, None, None)
        return copied


def make(
    cls: type[Sparse], shape: Sequence[int], *parts: Tensor, ctx: Context | None = None
) -> Sparse:
    """Return a sparse array of these components: values, indices and, for csr, indptr."""
    array = new_object(cls)
    array._set(shape, *parts)
    set_empty(array)
    array._ctx = ctx
    return array


# -- csr and row_sparse ---------------------------------------------------------------------------


_FULL = slice(None)


class CSRNDArray(BaseSparseNDArray):
    """A compressed sparse row matrix: row i has the values from indptr[i] to indptr[i + 1].

    Parameters
    ----------
    handle
        An array of the same class whose components the new one shares.
    writable
        Accepted for compatibility; has no effect.

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
        """A copy of the offsets of the rows."""
        return wrap_plain(NDArray, self._indptr.clone(), self._ctx)

    def to_torch(self) -> Tensor:
        """Return a torch tensor of csr layout on the same memory."""
        return torch.sparse_csr_tensor(self._indptr, self._indices, self._values, self._shape)

    def check_format(self, full_check: bool = True) -> None:
        """Raise unless the components are consistent; `full_check` checks each index too."""
        layout.check_csr(self._shape, *self._parts(), full_check)

    def asscipy(self) -> Any:
        """Return a scipy.sparse.csr_matrix with copies of the components."""
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

        rows = slice_function(self, begin=(key.start,), end=(key.stop,))
        assert isinstance(rows, CSRNDArray)  # same as a step of 1
        return rows

    def _receive_sparse(self, gradient: Tensor, req: str) -> None:
        if gradient.layout is not torch.strided:
            gradient = gradient.to_dense()
        warn_of_copy("default", "csr")
        self._set_dense(gradient + self._dense() if req == "add" else gradient)


class RowSparseNDArray(BaseSparseNDArray):
    """An array that stores some rows: row ``indices[i]`` is ``data[i]``, all others are zero.

    Parameters
    ----------
    handle
        An array of the same class whose components the new one shares.
    writable
        Accepted for compatibility; has no effect.

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
        """Return a torch tensor of coo layout with one sparse axis, on the same memory."""
        return torch.sparse_coo_tensor(self._indices[None], self._values, self._shape)

    def check_format(self, full_check: bool = True) -> None:
        """Raise unless the components are consistent; `full_check` checks each index too."""
        layout.check_rows(self._shape, *self._parts(), full_check)

    def retain(self, *args: Any, **kwargs: Any) -> RowSparseNDArray:
        """Return an array with only the given rows."""
        from . import retain

        rows = retain(self, *args, **kwargs)
        return cast("RowSparseNDArray", rows)  # unless `out` has a different storage type

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

    def _receive_sparse(self, gradient: Tensor, req: str) -> None:
        if gradient.layout is torch.strided:
            warn_of_copy("default", "row_sparse")
            values, rows = layout.rows_from_dense(gradient)
        else:
            gradient = gradient.coalesce()
            values, rows = gradient.values(), gradient.indices()[0]
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


# Pickles refer to classes by module; this is MXNet's.
CSRNDArray.__module__ = RowSparseNDArray.__module__ = "mxnet.ndarray.sparse"
