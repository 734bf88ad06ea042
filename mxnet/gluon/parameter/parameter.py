"""`Parameter`: a named array of a block on one or several devices; `Constant`: a fixed one.

Deferred initialization: if the shape is not fully known, `initialize` stores the initializer, and
the first forward pass infers the shape and fills the arrays.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ... import autograd, dtypes, initializer, ndarray, symbol
from ..._process.caches import ForkSafeLock
from ..._process.memory import expose, untouched_zeros
from ...base import mx_real_t, users_stacklevel
from ...context import Context, cpu, current_context, listed_contexts
from ...error import InvalidValue, MXNetError
from ...ndarray import NDArray
from ...runtime.array import exported, leave_graphs, plain, wrap_plain
from ...runtime.gradients import attach
from ...runtime.recording import state
from ...symbol import Symbol
from ...util import is_np_array, is_np_shape
from ..utils import shape_is_known

STORAGE_TYPES = ("default", "row_sparse", "csr")


class DeferredInitializationError(MXNetError):
    """A parameter was accessed before the first forward pass determined its shape.

    >>> layer = mx.gluon.nn.Dense(3)
    >>> layer.initialize()
    >>> try:
    ...     layer.weight.data()
    ... except mx.gluon.DeferredInitializationError:
    ...     print("its shape is known only after the first input")
    its shape is known only after the first input
    """


class ParameterError(MXNetError, AssertionError, ValueError):
    """A parameter was given contradictory or impossible settings."""


class Generation:
    """Counter of replaced parameter arrays, to validate caches."""

    number = 0


# Held while parameters are initialized and blocks traced.
FIRST_CALL = ForkSafeLock()


class Parameter:
    """A container of a block's weights, with one copy on each context.

    Parameters
    ----------
    name : str
        Name of the parameter.
    grad_req
        How gradients are stored: ``'write'``, ``'add'`` or ``'null'`` for none.
    shape : tuple of int
        Shape of the parameter; sizes of 0 are inferred from the first input.
    dtype : data type
        Data type of the parameter.
    lr_mult : float
        Factor of the learning rate of this parameter.
    wd_mult : float
        Factor of the weight decay of this parameter.
    init
        Initializer; None: use the initializer passed to `initialize`.
    allow_deferred_init : bool
        Whether the shape may be inferred from the first input.
    differentiable : bool
        Whether the parameter has a gradient.
    stype
        Storage type of the values: ``'default'`` (dense) or ``'row_sparse'``.
    grad_stype
        Storage type of the gradient: ``'default'`` (dense) or ``'row_sparse'``.

    >>> p = mx.gluon.Parameter("w", shape=(2, 3), init="ones")
    >>> p.initialize()
    >>> p.data().shape, p.grad().shape
    ((2, 3), (2, 3))
    """

    _torch: Tensor | None = None  # tensor on the array's memory, for torch modules

    def __init__(
        self,
        name: str,
        grad_req: str = "write",
        shape: int | Sequence[int] | None = None,
        dtype: Any = mx_real_t,
        lr_mult: float = 1.0,
        wd_mult: float = 1.0,
        init: Any = None,
        allow_deferred_init: bool = False,
        differentiable: bool = True,
        stype: str = "default",
        grad_stype: str = "default",
    ) -> None:
        for what, value in (("stype", stype), ("grad_stype", grad_stype)):
            if value not in STORAGE_TYPES:
                raise ParameterError(
                    f"{what} for Parameter '{name}' must be one of 'default', 'row_sparse', or "
                    f"'csr', but got '{value}'"
                )
        self.name = name
        self._stype = stype
        self._grad_stype = grad_stype
        self._grad_req: Any = None  # a str after construction
        self._data: Any = None  # a list of NDArray after initialization
        self._grad: list[NDArray] | None = None
        self._ctx_list: Any = None  # a list of Context after initialization
        self._ctx_map: list[list[int | None]] | None = None
        self._trainer: Any = None
        self._var: Symbol | None = None
        self._deferred_init: tuple = ()
        self._differentiable = differentiable
        self._allow_deferred_init = allow_deferred_init
        self._shape = (
            (shape,) if isinstance(shape, int) else None if shape is None else tuple(shape)
        )
        self._dtype = dtype
        self.lr_mult = lr_mult
        self.wd_mult = wd_mult
        self.init = init
        self.grad_req = grad_req

    def __repr__(self) -> str:
        return f"Parameter {self.name} (shape={self.shape}, dtype={self.dtype})"

    # -- facts --------------------------------------------------------------------------------

    @property
    def grad_req(self) -> str:
        """How backward stores the gradient: 'write', 'add' or 'null'; can be changed anytime."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req not in ("write", "add", "null"):
            raise ParameterError(
                f"grad_req must be one of 'write', 'add', or 'null', but got '{req}' for "
                f"Parameter '{self.name}'."
            )
        req = req if self._differentiable else "null"
        if self._grad_req == req:
            return
        self._grad_req = req
        if self._data is not None:
            self._init_grad()

    @property
    def dtype(self) -> Any:
        """The data type, as passed; setting it casts the arrays."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self.cast(dtype)

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape; unknown sizes are 0 (-1 in NumPy shapes), an unknown shape is None."""
        if self._shape is None or not is_np_shape():
            return self._shape
        return tuple(-1 if size == 0 else size for size in self._shape)

    @shape.setter
    def shape(self, new_shape: Sequence[int]) -> None:
        new_shape = stored_shape(new_shape)
        old = self._shape
        if old is not None and not fits(old, new_shape):
            raise ParameterError(
                f"Expected shape {new_shape} is incompatible with given shape {old} of "
                f"Parameter '{self.name}': known sizes cannot be changed."
            )
        self._shape = new_shape

    def _layer(self) -> str:
        name = self.name.rpartition("_")[0]
        for word in ("_running", "_moving", "_i2h", "_h2h"):
            name = name.removesuffix(word)
        return f"layer '{name}'" if name else "the layer"

    # -- initialization -----------------------------------------------------------------------

    def initialize(
        self,
        init: Any = None,
        ctx: Context | Sequence[Context] | None = None,
        default_init: Any = None,
        force_reinit: bool = False,
    ) -> None:
        """Create and fill the arrays, or defer that until the shape is known.

        Parameters
        ----------
        init : Initializer
            Takes precedence over the parameter's own.
        ctx : Context or list of them
            Device, or list of devices; by default the current one.
        default_init : Initializer
            Initializer if neither `init` nor the parameter's own is set.
        force_reinit : bool
            Whether to initialize again if there are values.
        """
        if self._data is not None and not force_reinit:
            warnings.warn(
                f"Parameter '{self.name}' is already initialized, ignoring. "
                "Set force_reinit=True to re-initialize.",
                stacklevel=users_stacklevel(),
            )
            return
        self._data = self._grad = None
        default_init = initializer.Uniform() if default_init is None else default_init
        if init is None:
            init = default_init if self.init is None else self.init
        try:
            is_known = shape_is_known(self.shape)
        except (AssertionError, TypeError) as error:
            raise type(error)(f"Parameter '{self.name}' of shape {self.shape}: {error}.") from None
        if not is_known and not self._allow_deferred_init:
            raise ValueError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: "
                f"{self.shape}. Pass all sizes, or allow_deferred_init=True."
            )
        self._deferred_init = (init, listed_contexts(ctx), default_init, None)
        if is_known:
            self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Create and fill the deferred arrays; thread-safe."""
        with FIRST_CALL:
            if self._deferred_init:
                self._initialize_deferred()

    def _initialize_deferred(self) -> None:
        init, ctx, default_init, data = self._deferred_init
        if not shape_is_known(self.shape):
            raise ParameterError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: "
                f"{self.shape}. Please specify in_units, in_channels, etc for "
                f"{self._layer()}."
            )
        with autograd.pause():
            is_owned = data is None
            if data is None:
                assert self._shape is not None  # known, as checked above
                zeros = untouched_zeros(self._shape, dtypes.to_torch(self._dtype))
                data = wrap_plain(ndarray.NDArray, zeros)
                if is_np_array():
                    data = data.as_np_ndarray()
                _fill(self.name, data, init, default_init)
                if self._stype != "default":
                    data = data.tostype(self._stype)
            self._init_impl(data, ctx, is_owned)
        self._deferred_init = ()

    def _load_init(
        self,
        data: NDArray,
        ctx: Context | Sequence[Context] | None,
        cast_dtype: bool = False,
        dtype_source: str = "current",
    ) -> None:
        """Set the values from an array; the parameter need not be initialized.

        Parameters
        ----------
        ctx
            Device, if the parameter has none yet.
        cast_dtype : bool
            Convert the values if the data types differ.
        dtype_source : {'current', 'saved'}
            Which data type to use then: the parameter's or the file's.
        """
        self._check_loading(data, ctx, cast_dtype, dtype_source)
        if self._differs_in_dtype(data):
            if dtype_source == "saved":
                self.cast(data.dtype)
            else:
                data = data.astype(self._dtype)
        if self._stype != data.stype:
            data = data.tostype(self._stype)
        self._shape = tuple(data.shape)
        if self._data is not None:
            self.set_data(data)
            return
        contexts = self.list_ctx() if self._deferred_init else listed_contexts(ctx or cpu())
        self._init_impl(data, contexts)
        self._deferred_init = ()

    def _differs_in_dtype(self, data: NDArray) -> bool:
        return self._dtype is not None and dtypes.to_torch(self._dtype) != dtypes.to_torch(
            data.dtype
        )

    def _check_loading(
        self,
        data: NDArray,
        ctx: Context | Sequence[Context] | None,
        cast_dtype: bool,
        dtype_source: str,
    ) -> None:
        """Raise if `_load_init` would fail with these values; nothing is changed."""
        if dtype_source not in ("current", "saved"):
            raise ParameterError(
                f"dtype_source must be 'current' or 'saved', but got {dtype_source!r}."
            )
        failed = f"Failed loading Parameter '{self.name}' from saved params:"
        if self._shape is not None and not fits(self._shape, data.shape):
            raise ParameterError(
                f"{failed} shape incompatible expected {self._shape} vs saved {data.shape}."
            )
        if self._differs_in_dtype(data) and not cast_dtype:
            raise ParameterError(
                f"{failed} dtype incompatible expected {dtypes.to_name(self._dtype)} vs saved "
                f"{dtypes.to_name(data.dtype)}. "
                "Set cast_dtype=True to cast the dtype of saved params."
            )
        if ctx is None or not (self._data is not None or self._deferred_init):
            return
        contexts, before = listed_contexts(ctx), self.list_ctx()
        if set(contexts) != set(before):
            raise ParameterError(
                f"Failed to load Parameter '{self.name}' on {contexts} because it was previous "
                f"initialized on {before}. Call reset_ctx() first."
            )

    # -- arrays -------------------------------------------------------------------------------

    def _init_impl(
        self, data: NDArray, ctx_list: Sequence[Context], is_owned: bool = False
    ) -> None:
        """Copy the data to all contexts; an owned array is used without a copy."""
        self._ctx_list = list(ctx_list)
        self._ctx_map = places_of(self._ctx_list)
        if is_np_array():
            data = data.as_np_ndarray()
        if is_owned and self._ctx_list == [data.context]:
            arrays = [data]
        else:
            arrays = [data.copyto(ctx) for ctx in self._ctx_list]
        self._grad = self._attached(arrays)
        self._move_torch(arrays)
        self._data = arrays  # assigned last: other threads read it as "complete"
        Generation.number += 1

    def _init_grad(self) -> None:
        """Create the gradient arrays according to grad_req; the data arrays are unchanged."""
        self._grad = self._attached(self._data)
        Generation.number += 1

    def _attached(self, arrays: list[NDArray]) -> list[NDArray] | None:
        if self._grad_req == "null":
            for array in arrays:
                leave_graphs(array)
            return None
        for array in arrays:
            attach(array, self._grad_req, stype=self._grad_stype)
        return [array.grad for array in arrays]  # pyright: ignore[reportReturnType]

    # -- changes -------------------------------------------------------------------------------

    def set_data(self, data: Any) -> None:
        """Copy new values to all contexts.

        Parameters
        ----------
        data
            The new values.
        """
        self.shape = data.shape
        if self._data is None:
            if not self._deferred_init:
                raise ParameterError(f"Parameter '{self.name}' has not been initialized")
            values = data if isinstance(data, NDArray) else ndarray.array(data, dtype=self._dtype)
            self._deferred_init = (*self._deferred_init[:3], values)
            self._finish_deferred_init()
            return
        if self._trainer is not None:
            self._trainer._forget_weight(self)
        for array in self._data:
            array[:] = data

    def reset_ctx(self, ctx: Context | Sequence[Context]) -> None:
        """Move to other contexts.

        Parameters
        ----------
        ctx
            Device, or list of devices.
        """
        ctx = listed_contexts(ctx)
        if self._data is not None:
            data = self._reduce()
            with autograd.pause():
                self._init_impl(data, ctx)
        elif self._deferred_init:
            init, _, default_init, data = self._deferred_init
            self._deferred_init = (init, ctx, default_init, data)
        else:
            raise ValueError(
                f"Cannot reset context for Parameter '{self.name}' because it has not been "
                "initialized."
            )

    def cast(self, dtype: Any) -> None:
        """Convert data and gradient to another type.

        Parameters
        ----------
        dtype
            The data type.
        """
        self._dtype = dtype
        self._var = None
        if self._data is None:
            return
        with autograd.pause():
            self._data = [array.astype(dtype) for array in self._data]
            self._move_torch(self._data)
            old = self._grad
            self._init_grad()
            if old is not None and self._grad is not None:
                for new, previous in zip(self._grad, old, strict=True):
                    new[:] = previous.astype(dtype)

    # -- access ---------------------------------------------------------------------------

    def _missing(self, ctx: Context | None = None) -> MXNetError:
        if self._data is None and self._deferred_init:
            return DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was "
                "deferred. Actual initialization happens during the first forward pass. Please "
                "pass one batch of data through the network before accessing Parameters, or give "
                f"{self._layer()} its input size (in_units, in_channels, ...)."
            )
        if self._data is not None:
            text = (
                f"Parameter '{self.name}' was not initialized on context {ctx}. "
                f"It was only initialized on {self._ctx_list}. Move the data there, or the "
                "parameters with reset_ctx()."
            )
        else:
            text = (
                f"Parameter '{self.name}' has not been initialized. Call initialize() of the block "
                "first. Create a Trainer with Block.collect_params(), which includes the "
                "parameters of "
                "child blocks, instead of Block.params."
            )
        error = MXNetError(text)
        error.node = self.name  # hybridized networks use it to find the layer
        return error

    def _require_data(self) -> None:
        """Raise if there are no arrays; wait for another thread that is creating them."""
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
        for array, context in zip(arrays, self._ctx_list, strict=True):
            if context is ctx or context == ctx:
                return array
        for array, context in zip(arrays, self._ctx_list, strict=True):
            if isinstance(ctx, Context) and _is_same_host(context, ctx):
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
        substitutes = state.substitutes
        if substitutes is not None and self in substitutes:
            return substitutes[self]
        return self._check_and_get(self._data, ctx)

    def list_data(self) -> list[NDArray]:
        """Return the arrays on all contexts."""
        if self._stype != "default":
            raise MXNetError(
                f"Cannot return copies of Parameter '{self.name}' on all contexts via list_data() "
                f"because its storage type is {self._stype}. Please use row_sparse_data() instead."
            )
        self._require_data()
        substitutes = state.substitutes
        if substitutes is not None and self in substitutes:
            return [substitutes[self]]
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
        """Return the contexts of this parameter, also if its initialization is deferred."""
        if self._data is not None:
            return list(self._ctx_list)
        if self._deferred_init:
            return list(self._deferred_init[1])
        raise MXNetError(f"Parameter '{self.name}' has not been initialized")

    # -- rows, through the trainer --------------------------------------------------------------

    def _set_trainer(self, trainer: Any) -> None:
        """Set the trainer that updates this parameter; a row-sparse one can have only one."""
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
        arrays = self._check_and_get(self._data, list)
        if self._stype != "default":
            rows = ndarray.arange(0, arrays[0].shape[0], dtype="int64", ctx=self._ctx_list[0])
            return self.row_sparse_data(rows).as_in_context(cpu())
        copies = [array.detach().as_in_context(cpu()) for array in arrays]
        if len(copies) == 1:
            return copies[0]
        return ndarray.add_n(*(c.as_nd_ndarray() for c in copies)) / len(copies)

    # -- torch --------------------------------------------------------------------------------

    def as_torch(self) -> Tensor:
        """Return the `torch.nn.Parameter` on this parameter's memory, always the same object.

        Updates by torch, such as an optimizer's, change the parameter's value. Its `grad` is
        independent of `Parameter.grad()`. A parameter that is not differentiable, such as a moving
        mean, is returned as a plain tensor (a buffer).

        >>> p = mx.gluon.Parameter("w", shape=(2,), init="zeros")
        >>> p.initialize()
        >>> p.as_torch().data.add_(1)
        tensor([1., 1.])
        >>> p.data().asnumpy()
        array([1., 1.], dtype=float32)
        """
        self._require_data()
        if self._torch is None:
            if len(self._data) > 1:
                raise MXNetError(
                    f"Parameter '{self.name}' has copies on {self._ctx_list}; a torch module has "
                    "one copy of each parameter. Call reset_ctx() with one context first."
                )
            if self._stype != "default":
                raise MXNetError(
                    f"Parameter '{self.name}' is {self._stype}; torch's parameters are dense."
                )
            memory = exported(self._data[0])
            if self._differentiable and memory.is_floating_point():
                memory = torch.nn.Parameter(memory, requires_grad=self._grad_req != "null")
            self._torch = memory
        return self._torch

    def _adopt(self, tensor: Tensor) -> None:
        """Use a torch module's tensor as the memory of this parameter; see `as_torch`."""
        data = tensor.detach()
        if not data.is_contiguous():
            data = data.contiguous()
            tensor.data = data
        expose(data)
        array = wrap_plain(ndarray.NDArray, data if data.ndim else data.view(1))
        self._shape, self._dtype = array.shape, array.dtype
        self._torch = None  # the torch parameter already shares this memory
        self._init_impl(array, [array.context], is_owned=True)
        self._torch = tensor
        self._deferred_init = ()

    def _move_torch(self, arrays: Sequence[NDArray]) -> None:
        """Rebind the tensor of torch modules to the memory of new arrays."""
        tensor = self._torch
        if tensor is None:
            return
        if len(arrays) > 1:
            raise MXNetError(
                f"Parameter '{self.name}' is in a torch module and can have only one context."
            )
        tensor.grad = None  # data type or device differ
        tensor.data = exported(arrays[0]).reshape(tensor.shape)

    # -- graphs and files ---------------------------------------------------------------------

    def var(self) -> Symbol:
        """Return the symbol that represents this parameter in graphs."""
        if self._var is None:
            variable = symbol.var(
                self.name,
                shape=self.shape,
                dtype=self.dtype,
                lr_mult=self.lr_mult,
                wd_mult=self.wd_mult,
                init=self.init,
                stype=self._stype,
            )
            self._var = variable.as_np_ndarray() if is_np_array() else variable
        return self._var

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_trainer": None, "_var": None, "_grad": None, "_torch": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._data is not None:
            self._init_grad()


def _fill(name: str, data: NDArray, init: Any, default_init: Any) -> None:
    if init is not None and not isinstance(init, str | initializer.Initializer) and callable(init):
        init(initializer.InitDesc(name), data)  # Mixed and Load select by name
        return
    if isinstance(default_init, str):
        default_init = initializer.create(default_init)
    caller = default_init if isinstance(default_init, initializer.Initializer) else None
    fill = caller or initializer.create(init)
    try:
        fill(initializer.InitDesc(name, {"__init__": init}), data)
    except InvalidValue as error:
        raise InvalidValue(f"Parameter '{name}' of shape {data.shape}: {error}") from error


def places_of(ctx_list: Sequence[Context]) -> list[list[int | None]]:
    """Return a table from device to array index: GPUs first, then CPUs, by device number.

    User-defined parameter classes read this table.
    """
    positions: list[list[int | None]] = [[], []]
    for position, ctx in enumerate(ctx_list):
        row = positions[ctx.device_typeid & 1]
        row.extend([None] * (ctx.device_id + 1 - len(row)))
        row[ctx.device_id] = position
    return positions


def _is_same_host(one: Context, other: Context) -> bool:
    """Return whether both are the same CPU; pinned and shared memory belong to it."""
    return 2 not in (one.device_typeid, other.device_typeid) and one.device_id == other.device_id


class Constant(Parameter):
    """A parameter with a fixed value.

    Parameters
    ----------
    name
        Name of the constant.
    value
        The value: an array, or nested lists of numbers.

    >>> c = mx.gluon.Constant("c", [[1, 2], [3, 4]])
    >>> c
    Constant c (shape=(2, 2), dtype=<class 'numpy.float32'>)
    """

    def __init__(self, name: str, value: Any) -> None:
        if not isinstance(value, NDArray):
            value = ndarray.array(value)
        self.value = value
        super().__init__(
            name,
            grad_req="null",
            shape=value.shape,
            dtype=value.dtype,
            init=_Value(name, value),
        )

    def __repr__(self) -> str:
        return f"Constant {self.name} (shape={self.shape}, dtype={self.dtype})"

    @property
    def grad_req(self) -> str:
        """Always 'null'."""
        return "null"

    @grad_req.setter
    def grad_req(self, req: str) -> None:
        if req != "null":
            warnings.warn(
                f'Constant parameter "{self.name}" does not support grad_req other than "null", '
                f'and new value "{req}" is ignored.',
                stacklevel=2,
            )
        self._grad_req = "null"


class _Value(initializer.Initializer):
    def __init__(self, name: str, value: NDArray) -> None:
        super().__init__()
        self._name, self._value = name, value

    def _init_weight(self, name: str, arr: NDArray) -> None:
        arr[:] = self._value.astype(arr.dtype, copy=False)

    _init_default = _init_bias = _init_gamma = _init_beta = _init_zero = _init_one = _init_weight

    def dumps(self) -> str:
        """Return the name of the initializer in graphs; the value is in the parameter file."""
        return f"Constant_{self._name}_{id(self._value)}"


def stored_shape(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return a shape with 0 for unknown sizes, in NumPy and classic shape semantics."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    return tuple(0 if size == -1 and is_np_shape() else size for size in sizes)


def fits(pattern: Sequence[int], shape: Sequence[int]) -> bool:
    """Return whether a shape agrees with all known sizes."""
    return len(pattern) == len(shape) and all(
        a in (-1, 0, b) for a, b in zip(pattern, shape, strict=True)
    )


def merged(stored: Sequence[int], shape: Sequence[int]) -> tuple[int, ...] | None:
    """Return the shape with the known sizes of both; None if they contradict each other."""
    if len(stored) != len(shape):
        return None
    pairs = list(zip(stored, shape, strict=True))
    if not all(a == b or a in (0, -1) or b in (0, -1) for a, b in pairs):
        return None
    return tuple(b if a in (0, -1) else a for a, b in pairs)
