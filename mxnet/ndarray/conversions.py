"""Arrays to and from NumPy, torch, other devices and classes, and pickles."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from .. import dtypes
from ..context import Context, cpu, torch_device
from ..error import MXNetError
from ..formats.parameters import params_file
from ..imperative.apply import stored_context
from ..imperative.freed_graphs import IntegerInGraph
from ..imperative.gradient import attach
from ..imperative.handle import (
    Handle,
    current,
    exported,
    plain,
    set_empty,
    wrap,
    wrap_plain,
    writable,
)
from ..imperative.history import COPYING, graph_tensor, record_step
from ..imperative.integers import derive
from .one_element import convertible

if TYPE_CHECKING:
    from .ndarray import NDArray

_FULL = slice(None)


class Conversions(Handle):
    """The methods of an array that hand its values elsewhere."""

    __slots__ = ()

    # -- to other libraries -------------------------------------------------------------------

    def asnumpy(self) -> np.ndarray:
        """Return a NumPy copy.

        >>> mx.nd.ones((2,)).asnumpy()
        array([1., 1.], dtype=float32)
        """
        tensor = plain(self)
        if tensor.dtype is torch.bfloat16:
            bits = tensor.contiguous().view(torch.int16).cpu().numpy()
            return bits.copy().view(dtypes.bfloat16)
        return convertible(tensor.cpu().numpy().copy() if tensor.is_cpu else tensor.cpu().numpy())

    def numpy(self) -> np.ndarray:
        """Return a NumPy copy: `asnumpy` under the name that other frameworks have."""
        return self.asnumpy()

    def asscalar(self) -> Any:
        """Return the only element as a NumPy scalar.

        >>> float(mx.nd.array([3]).asscalar())
        3.0
        """
        data = plain(self)
        if data.numel() != 1:
            raise ValueError(
                f"The current array is not a scalar: it has {data.numel()} elements. Index it, "
                "or use asnumpy()."
            )
        kind = dtypes.to_numpy(data.dtype)
        if kind is np.float32:  # nearly always
            return kind(data.item())
        return self.asnumpy().reshape(-1)[0]

    def item(self) -> Any:
        """Return the only element as a Python number."""
        return self.asscalar().item()

    def tolist(self) -> list:
        """Return the elements as nested Python lists."""
        return plain(self).tolist()

    def to_torch(self) -> Tensor:
        """Return a torch tensor that shares this array's memory.

        >>> mx.nd.ones((2,)).to_torch()
        tensor([1., 1.])
        """
        return exported(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = exported(self).cpu().numpy() if copy is False else self.asnumpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return exported(self).__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return plain(self).__dlpack_device__()

    def to_dlpack_for_read(self) -> Any:
        """Return a DLPack capsule that shares memory, to be read."""
        return torch.utils.dlpack.to_dlpack(exported(self))

    def to_dlpack_for_write(self) -> Any:
        """Return a DLPack capsule that shares memory, to be written."""
        writable(self)  # refuses members of a graph
        return torch.utils.dlpack.to_dlpack(exported(self))

    def wait_to_read(self) -> None:
        """Wait until pending work on this array is done."""
        if plain(self).is_cuda:
            torch.cuda.synchronize(plain(self).device)

    wait_to_write = wait_to_read

    # -- copies -------------------------------------------------------------------------------

    def copy(self) -> NDArray:
        """Return a copy on the same device."""
        return self.copyto(self.context)

    def copyto(self, other: NDArray | Context) -> NDArray:
        """Copy into another array of the same shape, or to a new one on a context.

        Parameters
        ----------
        other
            The other array, or a device.
        """
        if isinstance(other, Handle):
            if other is self:
                warnings.warn(
                    "You are attempting to copy an array to itself", RuntimeWarning, stacklevel=2
                )
                return other
            if other.stype != "default":
                other[:] = self
                return other
            if writable(other).shape != plain(self).shape:
                raise MXNetError(
                    f"copyto: the arrays have shapes {self.shape} and {other.shape}; "
                    "they must be equal."
                )
            other._write(_FULL, self)
            return other
        if isinstance(other, Context):
            device = torch_device(other)
            try:
                tensor = current(self)
            except IntegerInGraph:
                made = derive(self, lambda t: t.to(device, copy=True))
                record_step(made, COPYING, (self,))
                return made
            copied = tensor.clone() if tensor.device == device else tensor.to(device)
            made = wrap(type(self), copied, stored_context(other))
            record_step(made, COPYING, (self,))
            return made
        raise TypeError(f"copyto does not support type {type(other)}")

    def as_in_context(self, context: Context) -> NDArray:
        """Return the array itself if it is on that context already, else a copy there.

        Parameters
        ----------
        context
            The device.
        """
        return self if self.context == context else self.copyto(context)

    as_in_ctx = as_in_context

    def as_nd_ndarray(self) -> NDArray:
        """Return this memory as a legacy NDArray."""
        return self

    def as_np_ndarray(self) -> NDArray:
        """Return this memory as an `mx.np.ndarray`."""
        from ..numpy import ndarray  # lazy import: numpy builds on this module

        return self._as(ndarray)

    def _as(self, cls: type[NDArray]) -> NDArray:
        """Return an array of another class on the same memory."""
        array = cls.__new__(cls)
        array._data = None if self._data is None else self._data.detach()
        array._member, array._grad = self._member, self._grad
        array._dtype, array._ctx = self._dtype, self._ctx
        return array

    def tostype(self, stype: str) -> NDArray:
        """Return the array in another storage type ('default', 'row_sparse', 'csr').

        Parameters
        ----------
        stype
            Storage type.
        """
        if stype == "default":
            return self.copy()
        from .sparse import cast_storage

        return cast_storage(self, stype)

    def detach(self) -> NDArray:
        """Return the same memory outside the recorded graph."""
        return wrap_plain(type(self), plain(self).detach(), self._ctx)

    # -- pickles ------------------------------------------------------------------------------

    def __reduce__(self) -> tuple:
        return type(self), (None,), self.__getstate__()

    def __getstate__(self) -> dict[str, Any]:
        """Return what MXNet pickles: the array as a record of a params file."""
        if self._data is None and graph_tensor(self) is None:
            return {"handle": None}
        ctx = self.context
        record = params_file.dump_record(plain(self), (ctx.device_typeid, ctx.device_id))
        return {"handle": bytearray(record)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take a pickled array; one from a GPU that is not here arrives on the CPU."""
        set_empty(self)
        if state["handle"] is None:
            return
        stored, place = params_file.load_record(state["handle"], "pickled array")
        if not isinstance(stored, Tensor):
            from .sparse import from_stored

            stored = from_stored(stored)._dense()
        ctx = Context(Context.devtype2str.get(place[0], "cpu"), place[1])
        try:
            device = torch_device(ctx)
        except MXNetError:
            ctx = cpu()
            device = torch_device(ctx)
        self._data, self._dtype = stored.to(device), stored.dtype
        self._ctx = stored_context(ctx)

    def __copy__(self) -> NDArray:
        return self.copy()

    def __deepcopy__(self, memo: dict) -> NDArray:
        made = wrap_plain(type(self), plain(self).clone(), self._ctx)
        if self.grad is not None:
            attach(made, self._grad.req)
        return made
