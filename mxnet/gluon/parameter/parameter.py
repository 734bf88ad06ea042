"""`Parameter`: a named array of a block on one or several devices.

A parameter whose shape is not fully known waits: `initialize` remembers how to fill it, and the
first forward pass, which infers the shape, does it (deferred initialization).
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ... import autograd, dtypes, initializer, ndarray, symbol
from ...base import mx_real_t, users_stacklevel
from ...context import Context, cpu, listed_contexts
from ...error import InvalidValue, MXNetError
from ...imperative.handle import wrap_plain
from ...memory import untouched_zeros
from ...ndarray import NDArray
from ...symbol import Symbol
from ...util import is_np_array, is_np_shape
from ..utils import shape_is_known
from .arrays import FIRST_CALL, ParameterArrays
from .errors import DeferredInitializationError, ParameterError
from .shapes import fits, stored_shape

STORAGE_TYPES = ("default", "row_sparse", "csr")


class Parameter(ParameterArrays):
    """A container of a block's weights, with one copy on each context.

    Parameters
    ----------
    name : str
        Name of the parameter.
    grad_req
        How gradients are stored: ``'write'``, ``'add'`` or ``'null'`` for none.
    shape : tuple of int
        Shape of the parameter; sizes of 0 wait for the first input.
    dtype : data type
        Data type of the parameter.
    lr_mult : float
        Factor of the learning rate of this parameter.
    wd_mult : float
        Factor of the weight decay of this parameter.
    init
        Initializer; None takes the one given to `initialize`.
    allow_deferred_init : bool
        Whether the shape may become known only with the first input.
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
        for what, given in (("stype", stype), ("grad_stype", grad_stype)):
            if given not in STORAGE_TYPES:
                raise ParameterError(
                    f"{what} for Parameter '{name}' must be one of 'default', 'row_sparse', or "
                    f"'csr', but got '{given}'"
                )
        super().__init__(name, stype, grad_stype)
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
        """What backward does with the gradient; it may be changed at any time."""
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
        """The data type, in the form it was given; setting it casts the arrays."""
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
                f"Parameter '{self.name}': it has shape {old}, and cannot become {new_shape}."
            )
        self._shape = new_shape

    def _layer(self) -> str:
        """Return the layer in words, for messages."""
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
        """Make the arrays and fill them, or wait for the shape if it is not known yet.

        Parameters
        ----------
        init : Initializer
            Over the parameter's own.
        ctx : Context or list of them
            By default the current one.
        default_init : Initializer
            Used if neither `init` nor the parameter has one.
        force_reinit : bool
            Also when there are values already.
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
            known = shape_is_known(self.shape)
        except (AssertionError, TypeError) as error:
            raise type(error)(f"Parameter '{self.name}' of shape {self.shape}: {error}.") from None
        if not known and not self._allow_deferred_init:
            raise ValueError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: "
                f"{self.shape}. Give all sizes, or make it with allow_deferred_init=True."
            )
        self._deferred_init = (init, listed_contexts(ctx), default_init, None)
        if known:
            self._finish_deferred_init()

    def _finish_deferred_init(self) -> None:
        """Make and fill the arrays that wait for their shape; several threads may ask for it."""
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
                assert self._shape is not None  # it is known, as was checked above
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
        """Take values from an array, initialized or not.

        Parameters
        ----------
        ctx
            Where to, if the parameter is nowhere yet.
        cast_dtype : bool
            Convert when the types differ.
        dtype_source : {'current', 'saved'}
            Whose type wins then.
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
        """Raise if `_load_init` could not take these values; nothing is changed."""
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
        wanted, before = listed_contexts(ctx), self.list_ctx()
        if set(wanted) != set(before):
            raise ParameterError(
                f"Failed to load Parameter '{self.name}' on {wanted} because it was previous "
                f"initialized on {before}. Call reset_ctx() first."
            )

    # -- values -------------------------------------------------------------------------------

    def _missing(self, ctx: Context | None = None) -> MXNetError:
        """Return the error for a parameter without an array."""
        if self._data is not None or not self._deferred_init:
            return super()._missing(ctx)
        return DeferredInitializationError(
            f"Parameter '{self.name}' has not been initialized yet because initialization was "
            "deferred. Actual initialization happens during the first forward pass. Please "
            "pass one batch of data through the network before accessing Parameters, or give "
            f"{self._layer()} its input size (in_units, in_channels, ...)."
        )

    def list_ctx(self) -> list[Context]:
        """Return the contexts on which this parameter is, or will be after deferral."""
        if self._data is None and self._deferred_init:
            return list(self._deferred_init[1])
        return super().list_ctx()

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
            made = data if isinstance(data, NDArray) else ndarray.array(data, dtype=self._dtype)
            self._deferred_init = (*self._deferred_init[:3], made)
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
            old = self._grad
            self._init_grad()
            if old is not None and self._grad is not None:
                for new, previous in zip(self._grad, old, strict=True):
                    new[:] = previous.astype(dtype)

    def var(self) -> Symbol:
        """Return the symbol that stands for this parameter in graphs."""
        if self._var is None:
            made = symbol.var(
                self.name,
                shape=self.shape,
                dtype=self.dtype,
                lr_mult=self.lr_mult,
                wd_mult=self.wd_mult,
                init=self.init,
                stype=self._stype,
            )
            self._var = made.as_np_ndarray() if is_np_array() else made
        return self._var

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_trainer": None, "_var": None, "_grad": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._data is not None:
            self._init_grad()


def _fill(name: str, data: NDArray, init: Any, default_init: Any) -> None:
    """Fill a new array by its initializer."""
    if init is not None and not isinstance(init, str | initializer.Initializer) and callable(init):
        init(initializer.InitDesc(name), data)  # Mixed and Load choose by name
        return
    if isinstance(default_init, str):
        default_init = initializer.create(default_init)
    caller = default_init if isinstance(default_init, initializer.Initializer) else None
    fill = caller or initializer.create(init)
    try:
        fill(initializer.InitDesc(name, {"__init__": init}), data)
    except InvalidValue as error:
        raise InvalidValue(f"Parameter '{name}' of shape {data.shape}: {error}") from error
