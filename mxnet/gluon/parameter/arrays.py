"""The arrays of a parameter: data and gradient, one of each on every context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import ndarray
from ...caches import ForkSafeLock
from ...context import Context, cpu, current_context
from ...error import MXNetError
from ...imperative.gradient import attach
from ...imperative.handle import leave_graphs, plain
from ...ndarray import NDArray
from ...util import is_np_array


class Generation:
    """Counts how often any parameter got new arrays, so that kept arrays can be checked."""

    number = 0


# One thread at a time initializes parameters and traces blocks.
FIRST_CALL = ForkSafeLock()


class ParameterArrays:
    """Holds what a parameter is made of; `Parameter` decides how they are made."""

    def __init__(self, name: str, stype: str, grad_stype: str) -> None:
        self.name = name
        self._stype = stype
        self._grad_stype = grad_stype
        self._grad_req: Any = None  # a str, once the parameter is made
        self._data: Any = None  # a list of NDArray, once initialized
        self._grad: list[NDArray] | None = None
        self._ctx_list: Any = None  # a list of Context, once there are arrays
        self._ctx_map: list[list[int | None]] | None = None
        self._trainer: Any = None

    # -- making -------------------------------------------------------------------------------

    def _init_impl(
        self, data: NDArray, ctx_list: Sequence[Context], is_owned: bool = False
    ) -> None:
        """Put copies of the data on all contexts; one may be the data itself if it is owned."""
        self._ctx_list = list(ctx_list)
        self._ctx_map = places_of(self._ctx_list)
        if is_np_array():
            data = data.as_np_ndarray()
        if is_owned and self._ctx_list == [data.context]:
            arrays = [data]
        else:
            arrays = [data.copyto(ctx) for ctx in self._ctx_list]
        self._grad = self._attached(arrays)
        self._data = arrays  # last: other threads take it to mean that all is there
        Generation.number += 1

    def _init_grad(self) -> None:
        """Make the gradient arrays that grad_req asks for; the data arrays stay the same."""
        self._grad = self._attached(self._data)
        Generation.number += 1

    def _attached(self, arrays: list[NDArray]) -> list[NDArray] | None:
        """Attach new gradients to arrays and return them."""
        if self._grad_req == "null":
            for array in arrays:
                leave_graphs(array)
            return None
        for array in arrays:
            attach(array, self._grad_req, stype=self._grad_stype)
        return [array.grad for array in arrays]  # pyright: ignore[reportReturnType]

    # -- looking up ---------------------------------------------------------------------------

    def _missing(self, ctx: Context | None = None) -> MXNetError:
        """Return the error for a parameter without an array."""
        if self._data is not None:
            text = (
                f"Parameter '{self.name}' was not initialized on context {ctx}. "
                f"It was only initialized on {self._ctx_list}. Move the data there, or the "
                "parameters with reset_ctx()."
            )
        else:
            text = (
                f"Parameter '{self.name}' has not been initialized. Call initialize() of the block "
                "first. Note that Block.collect_params() has the parameters of child blocks too; "
                "Block.params has not: initialize and create a Trainer with the former."
            )
        error = MXNetError(text)
        error.node = self.name  # a hybridized network finds the layer by it
        return error

    def _require_data(self) -> None:
        """Raise if there are no arrays; another thread that is making them is waited for."""
        if self._data is None:
            with FIRST_CALL:
                if self._data is None:
                    raise self._missing()

    def _check_and_get(self, arrays: list[NDArray] | None, ctx: Any) -> Any:
        """Return the array on a context, or all of them when `ctx` is the type `list`."""
        if arrays is None:
            raise self._missing()
        if ctx is list:
            return list(arrays)
        if ctx is None:
            if len(arrays) == 1:
                return arrays[0]
            ctx = current_context()
        for array, place in zip(arrays, self._ctx_list, strict=True):
            if place is ctx or place == ctx:
                return array
        for array, place in zip(arrays, self._ctx_list, strict=True):
            if isinstance(ctx, Context) and _is_same_host(place, ctx):
                return array
        raise self._missing(ctx)

    def data(self, ctx: Context | None = None) -> NDArray:
        """Return the array on a context: the only one, or that of the current context."""
        if self._stype != "default":
            raise MXNetError(
                f"Cannot return a copy of Parameter '{self.name}' on ctx {ctx} via data() because "
                f"its storage type is {self._stype}. Please use row_sparse_data() instead."
            )
        if self._data is None:
            self._require_data()
        return self._check_and_get(self._data, ctx)

    def list_data(self) -> list[NDArray]:
        """Return the arrays on all contexts."""
        if self._stype != "default":
            raise MXNetError(
                f"Cannot return copies of Parameter '{self.name}' on all contexts via list_data() "
                f"because its storage type is {self._stype}. Please use row_sparse_data() instead."
            )
        self._require_data()
        return self._check_and_get(self._data, list)

    def _check_grad(self) -> None:
        self._require_data()
        if self._data is not None and self._grad is None:
            raise MXNetError(
                f"Cannot get gradient array for Parameter '{self.name}' because grad_req='null'"
            )

    def grad(self, ctx: Context | None = None) -> NDArray:
        """Return the gradient array on a context; backward writes into it."""
        self._check_grad()
        return self._check_and_get(self._grad, ctx)

    def list_grad(self) -> list[NDArray]:
        """Return the gradient arrays on all contexts."""
        self._check_grad()
        return self._check_and_get(self._grad, list)

    def list_ctx(self) -> list[Context]:
        """Return the contexts on which the arrays are."""
        if self._data is None:
            raise MXNetError(f"Parameter '{self.name}' has not been initialized")
        return list(self._ctx_list)

    # -- rows, through the trainer --------------------------------------------------------------

    def _set_trainer(self, trainer: Any) -> None:
        """Remember who updates this parameter; a row_sparse one has a single trainer."""
        if self._stype != "default" and self._trainer and trainer and self._trainer is not trainer:
            raise MXNetError(
                f"Failed to set the trainer for Parameter '{self.name}' because it was already "
                f"set: a {self._stype} Parameter can have one Trainer only."
            )
        self._trainer = trainer

    def _check_row_sparse(self, call: str) -> None:
        if self._stype != "row_sparse":
            raise MXNetError(
                f"Cannot return a copy of Parameter {self.name} via {call} because its storage "
                f"type is {self._stype}. Please use data() instead."
            )

    def _pull_rows(self, arrays: list[NDArray], row_id: NDArray) -> list[NDArray]:
        """Let the trainer bring rows up to date, and return the arrays."""
        if self._trainer is None:
            raise MXNetError(
                f"Cannot get row_sparse data for Parameter '{self.name}' when no Trainer is "
                "created with it."
            )
        self._trainer._row_sparse_pull(self, arrays, row_id)
        return arrays

    def row_sparse_data(self, row_id: NDArray) -> NDArray:
        """Return the current rows of a row_sparse parameter, on the context of `row_id`."""
        self._check_row_sparse("row_sparse_data()")
        return self._pull_rows([self._check_and_get(self._data, row_id.context)], row_id)[0]

    def list_row_sparse_data(self, row_id: NDArray) -> list[NDArray]:
        """Return the current rows of a row_sparse parameter, on all contexts."""
        self._check_row_sparse("list_row_sparse_data()")
        return self._pull_rows(self._check_and_get(self._data, list), row_id)

    # -- all copies ---------------------------------------------------------------------------

    def zero_grad(self) -> None:
        """Set the gradients to zero; without gradients do nothing."""
        for array in self._grad or ():
            if array.stype == "default":
                plain(array).zero_()
            else:
                ndarray.sparse.zeros(array.stype, array.shape, ctx=array.context).copyto(array)

    def _reduce(self) -> NDArray:
        """Return the mean of all copies, on the CPU."""
        arrays = self._check_and_get(self._data, list)
        if self._stype != "default":
            rows = ndarray.arange(0, arrays[0].shape[0], dtype="int64", ctx=self._ctx_list[0])
            return self.row_sparse_data(rows).as_in_context(cpu())
        copies = [array.detach().as_in_context(cpu()) for array in arrays]
        if len(copies) == 1:
            return copies[0]
        return ndarray.add_n(*(c.as_nd_ndarray() for c in copies)) / len(copies)


def places_of(ctx_list: Sequence[Context]) -> list[list[int | None]]:
    """Return where the array of a device stands: of GPUs, then of CPUs, by device number.

    Parameter classes that users write copy this table and read it.
    """
    places: list[list[int | None]] = [[], []]
    for position, ctx in enumerate(ctx_list):
        row = places[ctx.device_typeid & 1]
        row.extend([None] * (ctx.device_id + 1 - len(row)))
        row[ctx.device_id] = position
    return places


def _is_same_host(one: Context, other: Context) -> bool:
    """Return whether both are the same CPU: pinned and shared memory are its own memory."""
    return 2 not in (one.device_typeid, other.device_typeid) and one.device_id == other.device_id
