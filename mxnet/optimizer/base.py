"""`Optimizer`: learning rates, weight decay and their multipliers, update counts, registry."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

import numpy as np

from .. import dtypes
from ..error import InvalidType, did_you_mean
from ..lr_scheduler import DEFAULT_BASE_LR, LRScheduler
from ..ndarray import NDArray
from ..registry import RegistryError

Index = int | str
Class = TypeVar("Class", bound=type)
_MULTIPLIERS = {name: attrgetter(name) for name in ("lr_mult", "wd_mult")}
HALF_TYPES = (np.float16, dtypes.bfloat16)  # types that have a 32-bit copy in mixed precision


def is_half(weight: NDArray) -> bool:
    """Return whether a weight has a 16-bit floating-point type."""
    return weight.dtype in HALF_TYPES


def warn_of_half(name: str) -> None:
    """Warn that 16-bit weights train better with a 32-bit copy."""
    warnings.warn(
        "Accumulating with float16 in optimizer can lead to poor accuracy or slow convergence. "
        f"Consider using multi_precision=True option of the {name}",
        stacklevel=3,
    )


def _unknown_argument(optimizer: type, argument: str) -> str:
    options = dict.fromkeys(
        name
        for base in optimizer.__mro__
        if "__init__" in vars(base) and base is not object
        for name, parameter in inspect.signature(vars(base)["__init__"]).parameters.items()
        if name != "self" and parameter.kind is not inspect.Parameter.VAR_KEYWORD
    )
    common = {"lr": "learning_rate", "weight_decay": "wd", "betas": "beta1", "eps": "epsilon"}
    hint = did_you_mean(argument, options)
    if common.get(argument) in options:
        hint = f"Did you mean {common[argument]!r}?"
    return (
        f"{optimizer.__name__}() got an unexpected keyword argument {argument!r}. {hint} "
        f"It takes: {', '.join(options)}."
    )


class Optimizer:
    """Base class of all optimizers: subclasses define `create_state` and `update`.

    Parameters
    ----------
    rescale_grad : float
        Factor of all gradients, often 1 / batch size.
    param_idx2name : dict of int to str, optional
        Names of the parameters. Weight decay applies only to names that end in ``_weight`` or
        ``_gamma``.
    wd : float
        Weight decay: the gradient is increased by ``wd * weight``.
    clip_gradient : float, optional
        Gradients are clipped to [-clip_gradient, clip_gradient].
    learning_rate : float, optional
        The learning rate, also set as base rate of `lr_scheduler`; by default the scheduler's, or
        0.01.
    lr_scheduler : LRScheduler, optional
        Learning rate as a function of the number of updates.
    sym : Symbol, optional
        Symbol whose variables have attributes ``lr_mult`` and ``wd_mult``.
    begin_num_update : int
        Initial number of updates.
    multi_precision : bool
        Whether to update 16-bit weights through a 32-bit copy.
    param_dict : dict of int to gluon.Parameter, optional
        Parameters whose ``lr_mult`` and ``wd_mult`` are used; it is not pickled.

    >>> class Descent(mx.optimizer.Optimizer):
    ...     def update(self, index, weight, grad, state):
    ...         weight -= self.learning_rate * grad
    >>> w = mx.nd.array([1.0])
    >>> Descent(learning_rate=0.5).update(0, w, mx.nd.array([1.0]), None)
    >>> w.asnumpy()
    array([0.5], dtype=float32)
    """

    opt_registry: ClassVar[dict[str, type]] = {}
    # How updates may be split among workers: "rows" if rows of a weight are independent,
    # "parameters" if parameters are, None if neither.
    shards_by: ClassVar[str | None] = None
    allow_np_array = False

    def __init__(
        self,
        rescale_grad: float = 1.0,
        param_idx2name: dict[Any, str] | None = None,
        wd: float = 0.0,
        clip_gradient: float | None = None,
        learning_rate: float | None = None,
        lr_scheduler: LRScheduler | None = None,
        sym: Any = None,
        begin_num_update: int = 0,
        multi_precision: bool = False,
        param_dict: dict | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            raise TypeError(_unknown_argument(type(self), next(iter(unknown))))
        if isinstance(learning_rate, str | list | tuple | dict):
            raise InvalidType(
                f"{type(self).__name__}: learning_rate={learning_rate!r} is not a number; use "
                "lr_scheduler for a rate that changes."
            )
        self.rescale_grad = rescale_grad
        self.lr_scheduler = lr_scheduler
        if lr_scheduler is None and learning_rate is None:
            learning_rate = 0.01
        self.lr: Any = learning_rate  # a float; None stays None, as in MXNet
        if lr_scheduler is not None and learning_rate is not None:
            if lr_scheduler.base_lr not in (learning_rate, DEFAULT_BASE_LR):
                print(  # noqa: T201 (MXNet prints this even if the schedule has no explicit rate)
                    "learning rate from ``lr_scheduler`` has been overwritten by "
                    "``learning_rate`` in optimizer."
                )
            lr_scheduler.base_lr = learning_rate
        self.wd = wd
        self.lr_mult: dict[Index, float] = {}
        self.wd_mult: dict[Index, float] = {}
        self.begin_num_update = begin_num_update
        self.num_update = begin_num_update
        self._all_index_update_counts: dict[int, dict[Index, int]] = {0: {}}
        self._index_update_count = self._all_index_update_counts[0]
        item = getattr(clip_gradient, "item", None)  # for an array of one element
        self.clip_gradient = clip_gradient if item is None else item()
        self.multi_precision = multi_precision
        self.aggregate_num = 0
        if not isinstance(param_idx2name, dict | None):
            raise InvalidType("param_idx2name should be a dict of param indexes to names.")
        self.idx2name: dict[Any, str] = dict(param_idx2name or {})
        self.sym_info = () if sym is None else (sym.attr_dict(), sym.list_arguments())
        self.param_dict = param_dict or {}
        self.allow_np_array = False
        self.set_lr_mult({})
        self.set_wd_mult({})

    # -- the registry -------------------------------------------------------------------------

    @staticmethod
    def register(klass: Class) -> Class:
        """Register a class under its name in lower case.

        Parameters
        ----------
        klass
            The class.

        >>> @mx.optimizer.Optimizer.register
        ... class Still(mx.optimizer.Optimizer): ...
        >>> type(mx.optimizer.create("still")).__name__
        'Still'
        """
        if not (isinstance(klass, type) and issubclass(klass, Optimizer)):
            raise InvalidType(f"only subclasses of Optimizer can be registered, got {klass!r}")
        name = klass.__name__.lower()
        registered = Optimizer.opt_registry.get(name)
        if registered is not None and registered is not klass:
            warnings.warn(
                f"WARNING: New optimizer {klass.__module__}.{klass.__name__} is overriding "
                f"existing optimizer {registered.__module__}.{registered.__name__}",
                stacklevel=2,
            )
        Optimizer.opt_registry[name] = klass
        return klass  # pyright: ignore[reportReturnType] (narrowed to Optimizer, still `klass`)

    @staticmethod
    def create_optimizer(name: str, **kwargs: Any) -> Optimizer:
        """Create an optimizer by its name, in any case.

        Parameters
        ----------
        name
            Name of the optimizer, in any case.

        >>> mx.optimizer.create("sgd", learning_rate=0.5).learning_rate
        0.5
        """
        if not isinstance(name, str):
            raise TypeError(f"an optimizer's name is a str, got {type(name).__name__}")
        klass = Optimizer.opt_registry.get(name.lower())
        if klass is None:
            registry = Optimizer.opt_registry
            hint = did_you_mean(name.lower(), registry) or f"Known: {', '.join(sorted(registry))}."
            raise RegistryError(f"Cannot find optimizer {name}. {hint}")
        return klass(**kwargs)

    # -- defined by subclasses ----------------------------------------------------------------

    def create_state(self, index: Index, weight: NDArray) -> Any:
        """Return the state of a weight: arrays, tuples of them or None.

        Parameters
        ----------
        index
            Index of the weight, by which its settings are looked up.
        weight
            The weight; it is changed in place.
        """
        return None

    def create_state_multi_precision(self, index: Index, weight: NDArray) -> Any:
        """Return the state; (32-bit copy, state) for a 16-bit weight in mixed precision.

        Parameters
        ----------
        index
            Index of the weight, by which its settings are looked up.
        weight
            The weight; it is changed in place.
        """
        if is_half(weight):
            if self.multi_precision:
                copy = weight.astype(np.float32)
                return copy, self.create_state(index, copy)
            warn_of_half("optimizer")
        return self.create_state(index, weight)

    def update(self, index: Index, weight: NDArray, grad: NDArray, state: Any) -> None:
        """Update a weight and its state by its gradient.

        Parameters
        ----------
        index
            Index of the weight, by which its settings are looked up.
        weight
            The weight; it is changed in place.
        grad
            Its gradient.
        state
            Its state.
        """
        raise NotImplementedError(f"{type(self).__name__} must override update")

    def update_multi_precision(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        """Call `update`, for a 16-bit weight in mixed precision on its 32-bit copy.

        Parameters
        ----------
        index
            Index of the weight, by which its settings are looked up.
        weight
            The weight; it is changed in place.
        grad
            Its gradient.
        state
            Its state.
        """
        if not (self.multi_precision and is_half(weight)):
            self.update(index, weight, grad, state)
            return
        copy, state = state
        self.update(index, copy, grad.astype(np.float32), state)
        weight[:] = copy.astype(weight.dtype)

    # -- learning rates and weight decay ------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        """The current learning rate, without multipliers."""
        if self.lr_scheduler is not None:
            return self.lr_scheduler(self.num_update)
        return self.lr

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; raise if there is a scheduler.

        Parameters
        ----------
        lr
            The learning rate.
        """
        if self.lr_scheduler is not None:
            raise UserWarning(
                "LRScheduler of the optimizer has already been defined. Note that "
                "set_learning_rate can mutate the value of the learning rate of the optimizer "
                "only when the LRScheduler of the optimizer is undefined."
            )
        self.lr = lr

    def set_lr_scale(self, args_lrscale: Mapping) -> None:
        """Removed; use `set_lr_mult`.

        Parameters
        ----------
        args_lrscale
            Factors by index.
        """
        raise DeprecationWarning("set_lr_scale was removed; use set_lr_mult.")

    def set_lr_mult(self, args_lr_mult: Mapping[Index, float]) -> None:
        """Set multipliers of the learning rate by name or index; they override the symbol's.

        Parameters
        ----------
        args_lr_mult
            Factors by name or index.
        """
        self.lr_mult = {**self._symbol_multipliers("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: Mapping[Index, float]) -> None:
        """Set multipliers of the weight decay by name or index; they override all others.

        Parameters
        ----------
        args_wd_mult
            Factors by name or index.
        """
        without = {name: 0.0 for name in self.idx2name.values() if not self._decays(name)}
        self.wd_mult = {**without, **self._symbol_multipliers("__wd_mult__"), **args_wd_mult}

    @staticmethod
    def _decays(name: str) -> bool:
        return name.endswith(("_weight", "_gamma"))

    def _symbol_multipliers(self, key: str) -> dict[str, float]:
        if not self.sym_info:
            return {}
        attributes, names = self.sym_info
        return {
            name: float(attributes[name][key]) for name in names if key in attributes.get(name, ())
        }

    def _get_lrs(self, indices: Sequence[Index]) -> list[float]:
        """Return the current rates of parameters."""
        return self._multiplied(self.learning_rate, indices, "lr_mult")

    def _get_lr(self, index: Index) -> float:
        """Return the current rate of one parameter."""
        return self._get_lrs([index])[0]

    def _get_wds(self, indices: Sequence[Index]) -> list[float]:
        """Return the weight decays of parameters."""
        return self._multiplied(self.wd, indices, "wd_mult")

    def _get_wd(self, index: Index) -> float:
        """Return the weight decay of one parameter."""
        return self._get_wds([index])[0]

    def _multiplied(self, value: float, indices: Sequence[Index], which: str) -> list[float]:
        multipliers, parameters, names = getattr(self, which), self.param_dict, self.idx2name
        if not parameters and not multipliers:
            return [value] * len(indices)
        if parameters:  # Gluon passes all of them
            try:
                own = map(_MULTIPLIERS[which], map(parameters.__getitem__, indices))
                return [value * factor for factor in own]
            except KeyError:
                pass
        products = []
        for index in indices:
            if index in parameters:
                factor = getattr(parameters[index], which)
            elif index in multipliers:
                factor = multipliers[index]
            else:
                factor = multipliers.get(names.get(index), 1.0)
            products.append(value * factor)
        return products

    # -- counting -----------------------------------------------------------------------------

    def _set_current_context(self, device_id: int) -> None:
        """Select the device whose updates are counted."""
        self._index_update_count = self._all_index_update_counts.setdefault(device_id, {})

    def _update_count(self, index: Index | Sequence[Index]) -> None:
        """Count an update of one parameter or of several."""
        counts, begin = self._index_update_count, self.begin_num_update
        indices: Any = index if isinstance(index, list | tuple) else (index,)
        newest = counts.get(indices[0], begin) + 1 if indices else begin
        equal = dict.fromkeys(indices, newest)
        if len(equal) == len(indices) and set(map(counts.get, indices)) == {newest - 1}:
            counts.update(equal)  # fast path
        else:
            newest = begin
            for i in indices:
                counts[i] = counts.get(i, begin) + 1
                newest = max(newest, counts[i])
        self.num_update = max(newest, self.num_update)

    # -- pickling -----------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        state.pop("param_dict", None)  # parameters are the model's, not the optimizer's
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = {**state, "param_dict": {}}


register = Optimizer.register
create = Optimizer.create_optimizer
