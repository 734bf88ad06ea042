"""`NDArray`: a torch tensor with MXNet's semantics.

What it does with its elements is in `elements`, conversions and pickles are in `conversions`;
operator methods are generated in `codegen`, operator overloads in `operator_overloads`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from .. import dtypes
from ..base import integer_types, mx_real_t, numeric_types
from ..context import Context, context_of
from ..error import InvalidValue, ShapeError
from ..imperative.call_functions import make_call_function
from ..imperative.freed_graphs import IntegerInGraph
from ..imperative.gradient import attach, run_backward
from ..imperative.handle import (
    Handle,
    current,
    exported,
    new_object,
    plain,
    set_empty,
    set_plain,
    wrap,
)
from ..imperative.history import RESHAPING, graph_tensor, node_of, record_step
from ..imperative.integers import derive
from ..imperative.state import backward_mode, state
from ..memory import expose
from ..ops.interpreters import active
from ..ops.tensor.passing import cast
from ..ops.tensor.shaping.broadcasting import broadcast_to
from ..ops.tensor.shaping.reshape_codes import resolve_reshape
from ..ops.tensor.shaping.shape_changing import expand_dims, flatten, squeeze, transpose
from .conversions import Conversions
from .elements import Elements
from .printing import html, text

if TYPE_CHECKING:
    from ._stubs.methods import NDArrayMethods
else:
    NDArrayMethods = Handle  # codegen adds the methods

# MXNet's module has these names too; the package adds its creation functions and arithmetic.
__all__ = ["NDArray", "integer_types", "mx_real_t", "numeric_types"]

py_slice = slice
_DTYPE_NP_TO_MX = {None: -1, **{row.numpy: row.code for row in dtypes.TABLE}}
_DTYPE_MX_TO_NP = {-1: None, **{row.code: row.numpy for row in dtypes.TABLE}}
_GRAD_REQ_MAP = {"null": 0, "write": 1, "add": 3}
_STORAGE_TYPE_UNDEFINED, _STORAGE_TYPE_DEFAULT, _STORAGE_TYPE_ROW_SPARSE, _STORAGE_TYPE_CSR = range(
    -1, 3
)
_STORAGE_TYPE_STR_TO_ID = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
_STORAGE_TYPE_ID_TO_STR = {v: k for k, v in _STORAGE_TYPE_STR_TO_ID.items()}


def _either(array: NDArray) -> Tensor:
    """Return a tensor of the array whose shape and dtype are asked for: plain or tracked."""
    data = array._data
    return graph_tensor(array) if data is None else data


class NDArray(Elements, Conversions, NDArrayMethods):
    """A multi-dimensional array on a device.

    Make one with `mx.nd.array`, `mx.nd.zeros` and the like rather than by calling the class.

    Parameters
    ----------
    handle
        A torch tensor, or another array, whose memory the new array shares.
    writable
        Accepted for compatibility, without effect.

    >>> x = mx.nd.array([[1, 2], [3, 4]])
    >>> (x * 2).asnumpy()
    array([[2., 4.],
           [6., 8.]], dtype=float32)
    """

    __slots__ = ()
    __array_priority__ = 1000.0

    def __init__(self, handle: Tensor | Handle | None, writable: bool = True) -> None:
        if handle is None:  # empty, until __setstate__ fills it
            set_empty(self)
        elif isinstance(handle, Tensor):
            expose(handle)
            set_plain(self, handle.detach(), None)
        else:
            set_plain(self, plain(handle).detach(), handle._ctx)

    # -- facts --------------------------------------------------------------------------------

    @property
    def handle(self) -> Tensor:
        """The torch tensor underneath, outside any graph."""
        return exported(self)

    @property
    def writable(self) -> bool:
        """Whether the array may be changed: always."""
        return True

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return tuple(_either(self).shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return _either(self).ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return _either(self).numel()

    @property
    def dtype(self) -> Any:
        """The data type, as NumPy's scalar type."""
        return dtypes.to_numpy(self._dtype)

    @property
    def stype(self) -> str:
        """The storage type: 'default' for dense arrays."""
        return "default"

    @property
    def context(self) -> Context:
        """The device that the array lives on."""
        ctx = self._ctx
        if ctx is not None:
            return ctx
        return context_of(_either(self))

    ctx = context

    @property
    def T(self) -> NDArray:
        """A copy with the axes in reverse order; of a vector, the vector itself."""
        if self.ndim < 2:
            return self
        return _transpose(self)

    @property
    def grad(self) -> NDArray | None:
        """The gradient array that `attach_grad` made, or None."""
        record = self._grad
        return None if record is None else record.array

    @property
    def _fresh_grad(self) -> bool:
        """Whether backward has written the gradient since this was last set to False."""
        record = self._grad
        return record is not None and record.fresh

    @_fresh_grad.setter
    def _fresh_grad(self, value: bool) -> None:
        if self.grad is not None:
            self._grad.fresh = bool(value)

    # -- type and shape -----------------------------------------------------------------------

    def astype(self, dtype: Any, copy: bool = True) -> NDArray:
        """Return the array in another data type; without `copy` perhaps the array itself.

        Parameters
        ----------
        dtype
            The data type.
        copy
            Whether to copy if the type is the same.

        >>> mx.nd.array([1.7]).astype('int32').asnumpy()
        array([1], dtype=int32)
        """
        wanted = dtypes.to_torch(dtype if dtype is not None else "float32")
        if not copy and self._dtype is wanted:
            return self
        return _cast(self, wanted)

    def reshape(self, *shape: Any, **kwargs: Any) -> NDArray:
        """Return a view of another shape; 0, -1, -2, -3, -4 have MXNet's special meanings.

        Parameters
        ----------
        shape
            The new shape.

        >>> mx.nd.zeros((2, 3, 4)).reshape((-1, 0), reverse=True).shape
        (6, 4)
        """
        sizes = shape[0] if len(shape) == 1 else None
        if type(sizes) is tuple and sizes and not kwargs and 0 not in sizes:
            try:  # torch knows -1, refuses other codes, and parses numbers faster than a tuple
                data = self._data
                if active or data is None:
                    array = wrap(type(self), current(self).reshape(*sizes), self._ctx)
                    if array._member is not None:
                        array._member.node = (RESHAPING, node_of(self), sizes)
                    return array
                data = data.view(*sizes)  # what is not contiguous goes on below
            except IntegerInGraph:
                return self._view(lambda t: t.reshape(sizes))
            except (RuntimeError, TypeError):
                pass
            else:
                array = new_object(type(self))
                array._data = data
                array._dtype = self._dtype
                array._ctx = self._ctx
                array._grad = array._member = None
                return array
        reverse = kwargs.pop("reverse", False)
        if not shape:
            shape = kwargs.pop("shape", None)
            if shape is None:
                raise InvalidValue("Shape must be provided.")
        elif len(shape) == 1 and isinstance(shape[0], tuple | list):
            shape = shape[0]
        if kwargs:
            raise TypeError(f"Got unknown keywords in reshape: {', '.join(kwargs)}.")
        shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
        wanted = resolve_reshape(self.shape, shape, bool(reverse))
        if wanted is None:
            raise ShapeError(f"Cannot reshape array of size {self.size} into shape {shape}")
        return self._view(lambda t: t.reshape(wanted))

    def _view(self, function: Callable[[Tensor], Tensor]) -> NDArray:
        """Return the array in another shape that a function of torch makes, in its graph."""
        try:
            made = wrap(type(self), function(current(self)), self._ctx)
        except IntegerInGraph:
            made = derive(self, function)
        record_step(made, RESHAPING, (self,), made.shape)
        return made

    def expand_dims(self, axis: int, inplace: bool = False) -> NDArray:
        """Return a copy (or, with `inplace`, a view) with a new axis of size 1.

        Parameters
        ----------
        axis
            The axis; a negative one counts from the last.
        inplace
            Whether to return a view.
        """
        if inplace:
            return self._view(lambda t: t.unsqueeze(axis))
        return _expand_dims(self, axis)

    def squeeze(self, axis: Any = None, inplace: bool = False) -> NDArray:
        """Return a copy (or, with `inplace`, a view) without axes of size 1.

        Parameters
        ----------
        axis
            The axes to remove; None removes all of size 1.
        inplace
            Whether to return a view.
        """
        made = _squeeze(self, axis)
        return self.reshape(made.shape) if inplace else made

    def flatten(self, inplace: bool = False) -> NDArray:
        """Return a copy (or, with `inplace`, a view) with all axes but the first merged.

        Parameters
        ----------
        inplace
            Whether to return a view.
        """
        if inplace:
            return self._view(lambda t: t.flatten(1))
        return _flatten(self)

    def broadcast_to(self, shape: Any) -> NDArray:
        """Return a copy stretched to a shape; where it has 0, the size stays.

        Parameters
        ----------
        shape
            The new shape.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if self.ndim < len(shape):  # NumPy's rule, as MXNet's method has it
            lifted = self.reshape((1,) * (len(shape) - self.ndim) + self.shape)
            return _broadcast_to(lifted, shape)
        return _broadcast_to(self, shape)

    def split_v2(
        self, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False
    ) -> NDArray | list[NDArray]:
        """Split into equal sections, or at the given indices.

        Parameters
        ----------
        indices_or_sections
            Number of equal parts, or the indices that the parts begin at.
        axis
            The axis; a negative one counts from the last.
        squeeze_axis
            Whether to remove the split axis from the parts, of size 1 there.
        """
        from .functions import split_v2

        return split_v2(self, indices_or_sections, axis, squeeze_axis)

    def transpose(self, *axes: Any, **kwargs: Any) -> NDArray:
        """Return a copy with the axes permuted; without axes, reversed.

        Parameters
        ----------
        axes
            The new order of the axes; none reverses them.
        """
        if "axes" in kwargs:
            axes = kwargs["axes"]
        elif len(axes) == 1 and not isinstance(axes[0], int):
            axes = axes[0]
        return _transpose(self, tuple(axes)) if axes else _transpose(self)

    # -- gradients ----------------------------------------------------------------------------

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Make a gradient array, and let recorded computations reach this array.

        Parameters
        ----------
        grad_req : {'write', 'add', 'null'}
            What backward does with the gradient array.
        stype
            Storage type.

        >>> x = mx.nd.array([3.0])
        >>> x.attach_grad()
        >>> with mx.autograd.record():
        ...     y = x * x
        >>> y.backward()
        >>> x.grad.asscalar()
        np.float32(6.0)
        """
        attach(self, grad_req, stype=stype)

    def backward(
        self, out_grad: NDArray | None = None, retain_graph: bool = False, train_mode: bool = True
    ) -> None:
        """Compute the gradients of this array with respect to all attached arrays.

        `train_mode` is the mode in which gradients that users wrote run (`autograd.Function`);
        operators keep that of the recording.

        Parameters
        ----------
        out_grad
            Gradient of this array to start from; by default ones.
        retain_graph
            Whether to keep the graph, to differentiate it again.
        train_mode
            The mode in which `autograd.Function.backward` runs.
        """
        if train_mode == state.backward_training:
            run_backward([self], None if out_grad is None else [out_grad], retain_graph)
            return
        with backward_mode(train_mode):
            run_backward([self], None if out_grad is None else [out_grad], retain_graph)

    # -- the rest -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)

    def __format__(self, spec: str) -> str:
        """Format an array of one element as its number: ``f"{loss:.3f}"``."""
        if not spec:
            return str(self)
        if self.size != 1:
            raise TypeError(
                f"The format {spec!r} needs an array of one element; this one has shape "
                f"{self.shape}. Format loss.mean(), or elements one by one."
            )
        return format(self.item(), spec)

    def __matmul__(self, other: Any) -> NDArray:
        """Multiply matrices, or stacks of matrices with one batch axis."""
        if not isinstance(other, NDArray):
            return NotImplemented
        from .. import ndarray  # the functions are generated after this class

        if self.ndim == other.ndim == 3:
            return ndarray.batch_dot(self, other)
        if self.ndim > 2 or other.ndim > 2:
            raise ShapeError(
                f"@ multiplies matrices and stacks of them, not {self.shape} and {other.shape}."
            )
        return ndarray.dot(self, other)


_broadcast_to = make_call_function(broadcast_to, NDArray)
_cast = make_call_function(cast, NDArray)
_expand_dims = make_call_function(expand_dims, NDArray)
_flatten = make_call_function(flatten, NDArray)
_squeeze = make_call_function(squeeze, NDArray)
_transpose = make_call_function(transpose, NDArray)


def from_host(values: np.ndarray) -> Tensor:
    """Return a new tensor with the values of a NumPy array, bfloat16 bits included."""
    return dtypes.from_numpy(np.ascontiguousarray(values).copy())
