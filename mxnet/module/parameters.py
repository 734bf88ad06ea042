"""A module's parameters: the host's arrays, their first values, and the way to the devices."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence

from .. import ndarray as nd
from ..base import users_stacklevel
from ..context import cpu
from ..error import ShapeError
from ..executor_manager import copy_into
from ..initializer import InitDesc, Initializer
from ..model.checkpoint import Params
from ..ndarray import NDArray
from .executor_group import DataParallelExecutorGroup
from .names import PARAMETER_ENDINGS, not_presented, taken_for_parameter


def host_arrays(names: Sequence[str], blocks: Sequence[Sequence[NDArray]]) -> Params:
    """Return new arrays in the host's memory, like the first device's."""
    return {
        name: nd.sparse.zeros(block[0].stype, block[0].shape, ctx=cpu(), dtype=block[0].dtype)
        for name, block in zip(names, blocks, strict=True)
    }


def give_values(
    arrays: Params,
    given: Mapping[str, NDArray] | None,
    initializer: Initializer | None,
    attributes: Mapping[str, Mapping[str, str]],
    allow_missing: bool,
) -> None:
    """Fill arrays with the values given for them, and the others by the initializer.

    Without `given` the initializer fills all; what it lacks is an error unless `allow_missing`.
    """
    missing = [] if given is None else [name for name in sorted(arrays) if name not in given]
    if missing and not allow_missing:
        raise RuntimeError(not_presented(missing, given))
    for name, array in sorted(arrays.items()):
        if given is not None and name in given:
            _copy(name, given[name], array)
        elif initializer is not None:
            _initialize(initializer, InitDesc(name, attributes.get(name)), array)


def _initialize(initializer: Initializer, name: InitDesc, array: NDArray) -> None:
    try:
        initializer(name, array)
    except ValueError as error:
        if name.endswith(PARAMETER_ENDINGS):
            raise
        raise ValueError(f"{error} {taken_for_parameter([str(name)])}") from error


def place(group: DataParallelExecutorGroup, arg_params: Params, aux_params: Params) -> None:
    """Copy parameters to new executors, which need all of them and in their own shapes."""
    given = {**arg_params, **aux_params}
    missing = [name for name in (*group.param_names, *group.aux_names) if name not in given]
    if missing:
        raise RuntimeError(not_presented(missing, given))
    for names, blocks in (
        (group.param_names, group.param_arrays),
        (group.aux_names, group.aux_arrays),
    ):
        for name, block in zip(names, blocks, strict=True):
            _check_shape(name, given[name], block[0])
    group.set_params(
        {name: arg_params[name] for name in group.param_names},
        {name: aux_params[name] for name in group.aux_names},
    )


def warn_ignored(call: str) -> None:
    """Warn the caller of a module's method that parameters keep the values they have."""
    warnings.warn(
        f"Parameters already initialized and force_init=False. {call} call ignored.",
        stacklevel=users_stacklevel(),
    )


def _check_shape(name: str, given: NDArray, needed: NDArray) -> None:
    if given.shape != needed.shape:
        raise ShapeError(
            f"Shape inconsistent: parameter {name!r} is given as {given.shape}, but the network "
            f"needs {needed.shape}."
        )


def _copy(name: str, given: NDArray, target: NDArray) -> None:
    if given is not target:
        _check_shape(name, given, target)
        copy_into(target, given, name)
