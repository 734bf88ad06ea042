"""Checks of a module's arguments: names, shapes of batches, values of parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .. import ndarray as nd
from ..base import users_stacklevel
from ..context import cpu
from ..error import MXNetError, ShapeError, did_you_mean
from ..formats.model_files import Params
from ..initializer import InitDesc, Initializer
from ..io import DataBatch, DataDesc
from ..io.batches import described
from ..ndarray import NDArray
from ..symbol import Symbol
from .executor_group import DataParallelExecutorGroup, copy_into

Descs = tuple[list[DataDesc], list[DataDesc] | None]
PARAMETER_ENDINGS = ("_weight", "_bias", "_gamma", "_beta")


def check_input_names(symbol: Symbol, names: Sequence[str], what: str, must_be: bool) -> None:
    """Raise or warn if the symbol does not have inputs of these names."""
    arguments = symbol.list_arguments()
    missing = [name for name in names if name not in arguments]
    if not missing:
        return
    candidates = [name for name in arguments if not name.endswith(PARAMETER_ENDINGS)]
    if what == "fixed_param_names":
        candidates = [name for name in arguments if name not in candidates]
    message = (
        f"You created Module with Module(..., {what}={list(names)}) but input with name "
        f"{', '.join(map(repr, missing))} is not found in symbol.list_arguments(). "
        "Did you mean one of:\n\t" + "\n\t".join(candidates)
    )
    near = did_you_mean(missing[0], arguments)
    if near:
        message += f"\n{near}"
    labels = [name for name in candidates if name.endswith("label")]
    if what == "label_names" and labels:
        message += f"\n{parameter_hint(labels)}"
    if must_be:
        raise ValueError(message)
    warnings.warn(message, stacklevel=3)  # attributed to the caller of Module(...)


def parameter_hint(names: Sequence[str]) -> str:
    """Return a hint about inputs that were not declared."""
    which = "label_names" if all(name.endswith("label") for name in names) else "data_names"
    return (
        "Inputs that are in neither data_names nor label_names are parameters: did you mean "
        f"{which}={list(names)}?"
    )


def check_names_match(names: Sequence[str], descs: Sequence[DataDesc], what: str) -> None:
    """Raise if the names of the descriptions differ from the module's."""
    described_names = [desc.name for desc in descs]
    if sorted(described_names) != sorted(names):
        raise ValueError(mismatch_message(names, descs, what))


def mismatch_message(names: Sequence[str], descs: Sequence[DataDesc], what: str) -> str:
    """Return an error message with the given and expected names, and the nearest match."""
    described_names = [desc.name for desc in descs]
    message = (
        f"Data provided by {what}_shapes don't match names specified by {what}_names "
        f"({list(descs)} vs. {list(names)})"
    )
    for name in described_names:
        if name not in names and (near := did_you_mean(name, names)):
            return f"{message}. {name!r} is not among them. {near}"
    if described_names and names:
        message += (
            f". Create the iterator with {what}_name={names[0]!r}, or the Module with "
            f"{what}_names={described_names}."
        )
    return message


def missing_message(missing: Sequence[str], present: Iterable[str]) -> str:
    """Return an error message about parameters without a value."""
    present = sorted(present)
    near = next((n for m in missing if (n := did_you_mean(m, present))), "")
    verb = "is" if len(missing) == 1 else "are"
    return " ".join(
        filter(
            None,
            (
                f"{', '.join(missing)} {verb} not presented:",
                f"the given parameters are {', '.join(present) or 'none'}.",
                near,
                "Use allow_missing=True to initialize missing parameters.",
            ),
        )
    )


# -- batches ------------------------------------------------------------------------------------


def parse_data_desc(
    data_names: Sequence[str],
    label_names: Sequence[str],
    data_shapes: Sequence,
    label_shapes: Sequence | None,
    symbol: Symbol | None = None,
) -> Descs:
    """Return the descriptions of data and labels, checked against the names.

    Data must match. Missing labels, as in prediction, warn; unknown labels raise an error.
    """
    data = [described(d) for d in data_shapes]
    check_names_match(data_names, data, "data")
    labels = [described(d) for d in label_shapes or ()]
    if sorted(d.name for d in labels) != sorted(label_names):
        message = mismatch_message(label_names, labels, "label")
        if symbol is not None:
            allowed = {*label_names, *symbol.list_arguments()}
            if any(d.name not in allowed for d in labels):
                raise ValueError(message)
        warnings.warn(message, stacklevel=users_stacklevel())
    return data, labels or None


def descs_of_batch(
    batch: Any, data_shapes: Sequence[DataDesc], label_shapes: Sequence[DataDesc] | None
) -> Descs | None:
    """Return the descriptions of a batch if its shapes differ from the given ones, else None."""
    if len(batch.data) < len(data_shapes):
        raise MXNetError(
            f"The batch has {len(batch.data)} data array(s), but {len(data_shapes)} are needed: "
            f"{', '.join(d.name for d in data_shapes)}."
        )
    for desc, array in zip(data_shapes, batch.data, strict=False):
        if desc.shape != array.shape:
            break
    else:
        return None
    data = getattr(batch, "provide_data", None) or _describe(data_shapes, batch.data)
    labels = getattr(batch, "provide_label", None)
    arrays = getattr(batch, "label", None)
    if not labels and arrays and label_shapes:
        labels = _describe(label_shapes, arrays)
    return data, labels or None


def _describe(descs: Sequence[DataDesc], arrays: Sequence[Any]) -> list[DataDesc]:
    return [
        DataDesc(d.name, x.shape, d.dtype, d.layout) for d, x in zip(descs, arrays, strict=False)
    ]


def join_batches(batches: Sequence[Any]) -> DataBatch:
    """Concatenate the batches of several devices."""

    def join(kind: str) -> list | None:
        lists = [getattr(batch, kind) for batch in batches]
        if not lists[0]:
            return None
        here = lists[0][0].context
        return [
            nd.concat(*(part.as_in_context(here) for part in parts), dim=0)
            for parts in zip(*lists, strict=True)
        ]

    return DataBatch(join("data"), join("label"))


# -- parameters ---------------------------------------------------------------------------------


def host_arrays(names: Sequence[str], blocks: Sequence[Sequence[NDArray]]) -> Params:
    """Return new CPU arrays like those of the first device."""
    return {
        name: nd.sparse.zeros(block[0].stype, block[0].shape, ctx=cpu(), dtype=block[0].dtype)
        for name, block in zip(names, blocks, strict=True)
    }


def give_values(
    arrays: Params,
    params: Mapping[str, NDArray] | None,
    initializer: Initializer | None,
    attributes: Mapping[str, Mapping[str, str]],
    allow_missing: bool,
) -> None:
    """Fill arrays with the values in `params`, or by the initializer.

    Without `params` the initializer fills all. Missing values raise unless `allow_missing`.
    """
    values = arrays if params is None else params
    missing = [name for name in sorted(arrays) if name not in values]
    if missing and not allow_missing:
        raise RuntimeError(missing_message(missing, values))
    for name, array in sorted(arrays.items()):
        if params is not None and name in params:
            _copy(name, params[name], array)
        elif initializer is not None:
            _initialize(initializer, InitDesc(name, attributes.get(name)), array)


def _initialize(initializer: Initializer, name: InitDesc, array: NDArray) -> None:
    try:
        initializer(name, array)
    except ValueError as error:
        if name.endswith(PARAMETER_ENDINGS):
            raise
        raise ValueError(f"{error} {parameter_hint([str(name)])}") from error


def copy_to_devices(
    group: DataParallelExecutorGroup, arg_params: Params, aux_params: Params
) -> None:
    """Copy parameters to new executors; raise if one is missing or has the wrong shape."""
    params = {**arg_params, **aux_params}
    missing = [name for name in (*group.param_names, *group.aux_names) if name not in params]
    if missing:
        raise RuntimeError(missing_message(missing, params))
    for names, blocks in (
        (group.param_names, group.param_arrays),
        (group.aux_names, group.aux_arrays),
    ):
        for name, block in zip(names, blocks, strict=True):
            _check_shape(name, params[name], block[0])
    group.set_params(
        {name: arg_params[name] for name in group.param_names},
        {name: aux_params[name] for name in group.aux_names},
    )


def warn_ignored(call: str) -> None:
    """Warn that the parameters are not changed."""
    warnings.warn(
        f"Parameters already initialized and force_init=False. {call} call ignored.",
        stacklevel=users_stacklevel(),
    )


def _check_shape(name: str, array: NDArray, needed: NDArray) -> None:
    if array.shape != needed.shape:
        raise ShapeError(
            f"Shape inconsistent: parameter {name!r} is given as {array.shape}, but the network "
            f"needs {needed.shape}."
        )


def _copy(name: str, source: NDArray, target: NDArray) -> None:
    if source is not target:
        _check_shape(name, source, target)
        copy_into(target, source, name)


def name_arrays(batch: Any, data: Any, labels: Any) -> dict[str, Any]:
    """Return the arrays of a batch by name."""
    parts = ((data, batch.data), (labels, getattr(batch, "label", None)))
    return {
        desc.name: array
        for descs, arrays in parts
        for desc, array in zip(descs or (), arrays or (), strict=False)
    }
