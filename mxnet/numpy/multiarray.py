"""`mx.np.ndarray`, an NDArray with NumPy's semantics, and functions that create it from values.

As in MXNet, `mxnet.numpy.multiarray` has all functions of `mx.np`.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast

import numpy as onp
import torch
from torch import Tensor

from .. import dtypes
from ..base import check_call, integer_types, numeric_types  # noqa: F401 (MXNet shows it here)
from ..context import Context, current_context, torch_device
from ..ndarray import NDArray, from_numpy  # noqa: F401
from ..ndarray.indexing import node_of_part
from ..ndarray.printing import values_to_print
from ..runtime.apply import stored_context
from ..runtime.array import Handle, plain, wrap_plain, writable
from ..runtime.gradients import attach
from ..runtime.integers import derive
from ..util import set_module, wrap_np_binary_func, wrap_np_unary_func  # noqa: F401
from . import indexing
from .codegen.functions import check_order

_DTYPES: dict[torch.dtype, Any] = {}


def _numpy_dtype(dtype: torch.dtype) -> Any:
    cached = _DTYPES.get(dtype)
    if cached is None:
        cached = _DTYPES[dtype] = onp.dtype(dtypes.to_numpy(dtype))
    return cached


class ndarray(NDArray):
    """An array with NumPy's semantics: scalars of shape (), bool comparisons, dtype promotion.

    Create arrays with `mx.np.array`, `mx.np.zeros` and similar functions. Devices and `autograd`
    work as for any NDArray.

    Parameters
    ----------
    handle
        A torch tensor, or another array, whose memory the new array shares.
    writable
        Accepted for compatibility; has no effect.

    >>> x = mx.np.array([[1, 2], [3, 4]])
    >>> x[x > 1]
    array([2., 3., 4.])
    """

    __slots__ = ()
    __module__ = "mxnet.numpy"  # module name in pickles
    is_numpy: ClassVar[bool] = True

    # -- metadata -----------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        """The data type, as NumPy's dtype."""
        return _numpy_dtype(self._dtype)

    @property
    def T(self) -> ndarray:
        """A copy with the axes in reverse order."""
        return cast("ndarray", self.transpose())

    @property
    def itemsize(self) -> int:
        """The size of an element in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.size * self.itemsize

    @property
    def device(self) -> Context:
        """The device of the array; the array API standard's name of `context`."""
        return self.context

    @property
    def mT(self) -> ndarray:
        """A copy with the last two axes exchanged."""
        return cast("ndarray", self.swapaxes(-1, -2))

    def to_device(self, device: Context, /, *, stream: Any = None) -> ndarray:
        """Return the array on a device: itself if it is already there, else a copy."""
        return cast("ndarray", self.as_in_context(device))

    # -- conversions --------------------------------------------------------------------------

    def as_nd_ndarray(self) -> NDArray:
        """Return a legacy NDArray that shares this memory."""
        return self._as(NDArray)

    def as_np_ndarray(self) -> ndarray:
        """Return the array itself."""
        return self

    def item(self, *args: Any) -> Any:
        """Return the only element, or the one at an index, as a Python number.

        >>> mx.np.array([[1, 2], [3, 4]]).item(1, 0)
        3.0
        """
        if not args and self.size != 1:
            raise ValueError("can only convert an array of size 1 to a Python scalar")
        return self.asnumpy().item(*args)

    def asscalar(self) -> Any:
        """Return the only element as a NumPy scalar; `item` returns a Python number."""
        if self.size != 1:
            raise ValueError("The current array is not a scalar")
        return self.asnumpy().reshape(-1)[0]

    def __float__(self) -> float:
        return float(self._only_element())

    def __int__(self) -> int:
        return int(self._only_element())

    def __complex__(self) -> complex:
        return complex(self._only_element())

    def _only_element(self) -> Any:
        if self.size != 1:
            raise TypeError("only size-1 arrays can be converted to Python scalars")
        return plain(self).item()

    def __index__(self) -> int:
        if self.ndim or self._dtype.is_floating_point:
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(plain(self).item())

    def __bool__(self) -> bool:
        size = self.size
        if size == 0:
            return False
        if size == 1:
            return bool(plain(self).item())
        raise ValueError("The truth value of an ndarray with multiple elements is ambiguous.")

    __nonzero__ = __bool__
    __hash__ = object.__hash__

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def astype(  # pyright: ignore[reportIncompatibleMethodOverride] (NumPy's signature)
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
    ) -> ndarray:
        """Return the array converted to a data type; a copy unless `copy` is False.

        >>> mx.np.array([1.7]).astype("int32")
        array([1], dtype=int32)
        """
        if order not in ("K", "C"):
            raise ValueError("order must be either 'K' or 'C'")
        if casting != "unsafe":
            raise ValueError("casting must be equal to 'unsafe'")
        if not subok:
            raise ValueError("subok must be equal to True")
        return cast("ndarray", NDArray.astype(self, onp.float32 if dtype is None else dtype, copy))

    def copy(self, order: str = "C") -> ndarray:
        """Return a copy on the same device."""
        if order != "C":
            raise NotImplementedError(
                f"ndarray.copy only supports order='C', while received {order}"
            )
        return cast("ndarray", self.copyto(self.context))

    def as_in_ctx(self, ctx: Context) -> ndarray:
        """Return the array on a context: itself if it is already there, else a copy."""
        return cast("ndarray", self.as_in_context(ctx))

    def reshape_view(self, *shape: Any, **kwargs: Any) -> ndarray:
        """Return a view with a new shape, by the rules and codes of legacy arrays.

        >>> x = mx.np.zeros((2, 3))
        >>> x.reshape_view(-1)[0] = 5
        >>> x[0, 0]
        array(5.)
        """
        return cast("ndarray", NDArray.reshape(self, *shape, **kwargs))

    # -- elements -----------------------------------------------------------------------------

    def _read(self, key: Any) -> ndarray:
        part = derive(self, lambda t: indexing.read(t, key))
        if part._member is not None:
            part._member.node = node_of_part(self, key, part.shape)
        return part

    def _write(self, key: Any, value: Any) -> None:
        memory = writable(self)
        if not self._take_member(key, value):
            indexing.write(memory, key, value)

    def __len__(self) -> int:
        shape = self.shape
        if not shape:
            raise TypeError("len() of unsized object")
        return shape[0]

    def __iter__(self) -> Any:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(len(self)))

    # -- gradients ----------------------------------------------------------------------------

    def attach_grad(self, grad_req: str = "write", stype: str | None = None) -> None:
        """Allocate a gradient array and make this array a leaf of the graph.

        Parameters
        ----------
        grad_req : {'write', 'add', 'null'}
            How backward stores the gradient.

        >>> x = mx.np.array(3.0)
        >>> x.attach_grad()
        >>> with mx.autograd.record():
        ...     y = x * x
        >>> y.backward()
        >>> x.grad
        array(6.)
        """
        attach(self, grad_req, stype=stype)

    # -- printing -----------------------------------------------------------------------------

    def __repr__(self) -> str:
        text = repr(values_to_print(self))
        if self._dtype is torch.bfloat16:
            text = text.replace("dtype=float32", "dtype=bfloat16")
        if self.size:  # newer versions of NumPy add the shape of summarized arrays
            text = re.sub(r",\s+shape=\([\d, ]+\)(?=[,)][^\]]*$)", "", text)
        if self._dtype is torch.float32:
            text = text[: text.rindex(",")] + ")" if "dtype=" in text else text
        elif "dtype=" not in text and self._dtype is not torch.bool:
            text = f"{text[:-1]}, dtype={self.dtype})"
        if self.context.device_type == "gpu":
            text = f"{text[:-1]}, ctx={self.context})"
        return text

    def __str__(self) -> str:
        return str(values_to_print(self))

    def __format__(self, spec: str) -> str:
        if not spec:
            return str(self)
        if self.ndim:
            raise TypeError(
                f"Cannot format mxnet.numpy.ndarray with format_spec {spec!r}: only scalars "
                f"support one, this array has shape {self.shape}."
            )
        return format(self.item(), spec)

    def _repr_html_(self) -> Any:
        return None  # no HTML: notebooks show the text

    def __round__(self, n: int | None = None) -> ndarray:
        return cast("ndarray", self.round(n or 0))


Handle.numpy_class = ndarray


# -- creation -------------------------------------------------------------------------


def array(object: Any, dtype: Any = None, ctx: Context | None = None) -> ndarray:
    """Create an array from lists, NumPy arrays or arrays of `mx.np`.

    The default `dtype` is that of an array, else float32.

    Parameters
    ----------
    object
        The values.
    dtype
        Data type of the array; by default float32, or that of an array.
    ctx
        Device of the array; by default the current one.

    >>> mx.np.array([[1, 2], [3, 4]])
    array([[1., 2.],
           [3., 4.]])
    """
    ctx = current_context() if ctx is None else ctx
    device = torch_device(ctx)
    if isinstance(object, Handle):
        if not isinstance(object, ndarray):
            raise ValueError(
                "To convert an mx.nd.NDArray to an mx.np.ndarray, use the zero-copy method "
                "as_np_ndarray()."
            )
        source = plain(object)
    elif isinstance(object, Tensor):
        source = object.detach()
    else:
        source = _from_host(object, dtype)
    target_dtype = source.dtype if dtype is None else dtypes.to_torch(dtype)
    tensor = torch.empty(source.shape, dtype=target_dtype, device=device)
    output = wrap_plain(ndarray, tensor, stored_context(ctx))
    if isinstance(object, Handle):
        output[:] = object  # recorded: gradients flow to the source
    else:
        tensor.copy_(source)
    return output


def _from_host(values: Any, dtype: Any) -> Tensor:
    keeps_dtype = isinstance(values, onp.ndarray | onp.generic)
    implied = onp.float32 if dtype is None else dtypes.to_numpy(dtypes.to_torch(dtype))
    try:
        host = onp.asarray(_without_arrays(values), dtype=None if keeps_dtype else implied)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"array: {error}. Pass nested lists of numbers with equal lengths, or an array."
        ) from None
    if host.dtype.kind == "u" and host.dtype.itemsize > 1:
        host = host.astype(onp.int64)
    elif host.dtype.name not in dtypes.BY_NAME and not dtypes.is_bfloat16(host.dtype):
        host = host.astype(implied)
    return dtypes.from_numpy(onp.ascontiguousarray(host).reshape(host.shape))


def _without_arrays(values: Any) -> Any:
    if isinstance(values, NDArray):
        return values.asnumpy()
    if isinstance(values, list | tuple):
        return [_without_arrays(v) for v in values]
    return values


def empty(
    shape: Any, dtype: Any = onp.float32, order: str = "C", ctx: Context | None = None
) -> ndarray:
    """Return a new, uninitialized array.

    Parameters
    ----------
    shape
        Shape of the array: a number or a tuple.
    dtype
        Data type of the array; float32 by default.
    order
        Order in memory; only ``'C'``, the last axis fastest.
    ctx
        Device of the array; by default the current one.

    >>> mx.np.empty((2, 3)).shape
    (2, 3)
    """
    check_order(order)
    ctx = current_context() if ctx is None else ctx
    sizes: tuple[int, ...] = (int(shape),) if isinstance(shape, int | onp.integer) else tuple(shape)
    target_dtype = dtypes.to_torch(onp.float32 if dtype is None else dtype)
    tensor = torch.empty(sizes, dtype=target_dtype, device=torch_device(ctx))
    return wrap_plain(ndarray, tensor, stored_context(ctx))


def __getattr__(name: str) -> Any:
    from .. import numpy

    try:
        return getattr(numpy, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
