"""What a module is bound to: the shapes of its batches, and the executors that compute them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import ndarray as nd
from ..error import MXNetError
from ..io import DataBatch, DataDesc
from ..io.batches import described
from ..symbol import Symbol
from .executor_group import DataParallelExecutorGroup
from .names import check_names_match, mismatch

if TYPE_CHECKING:
    from .symbol_module import SymbolModule

Descs = tuple[list[DataDesc], list[DataDesc] | None]


def parse_descs(
    symbol: Symbol,
    data_names: Sequence[str],
    label_names: Sequence[str],
    data_shapes: Sequence,
    label_shapes: Sequence | None,
) -> Descs:
    """Return the descriptions of data and labels, checked against the names.

    Data must match. Labels may be left out, as in prediction, with a warning; a label that
    neither the module nor its symbol knows is an error.
    """
    data = [described(d) for d in data_shapes]
    check_names_match(data_names, data, "data")
    labels = [described(d) for d in label_shapes or ()]
    if sorted(d.name for d in labels) != sorted(label_names):
        message = mismatch(label_names, labels, "label")
        known = {*label_names, *symbol.list_arguments()}
        if any(d.name not in known for d in labels):
            raise ValueError(message)
        warnings.warn(message, stacklevel=3)
    return data, labels or None


def group_to_share(shared_module: SymbolModule, devices: int) -> DataParallelExecutorGroup:
    """Return the executors of a module whose parameters another one will use."""
    if not (shared_module.binded and shared_module.params_initialized):
        raise AssertionError("shared_module must be bound and have its parameters")
    group = shared_module._exec_group
    if len(group.execs) < devices:
        raise AssertionError("shared_module has fewer contexts than this module")
    return group


def descs_of_batch(
    batch: Any, data_shapes: Sequence[DataDesc], label_shapes: Sequence[DataDesc] | None
) -> Descs | None:
    """Return what a batch of other shapes than these has, or None if its shapes are these."""
    shapes = [desc.shape for desc in data_shapes]
    now = [x.shape for x in batch.data]
    if shapes == now[: len(shapes)]:
        return None
    if len(now) < len(shapes):
        raise MXNetError(
            f"The batch has {len(now)} data array(s), but {len(shapes)} are needed: "
            f"{', '.join(d.name for d in data_shapes)}."
        )
    data = getattr(batch, "provide_data", None) or _described_as(data_shapes, batch.data)
    labels = getattr(batch, "provide_label", None)
    arrays = getattr(batch, "label", None)
    if not labels and arrays and label_shapes:
        labels = _described_as(label_shapes, arrays)
    return data, labels or None


def _described_as(descs: Sequence[DataDesc], arrays: Sequence[Any]) -> list[DataDesc]:
    """Return the descriptions with the shapes of these arrays."""
    return [
        DataDesc(d.name, x.shape, d.dtype, d.layout) for d, x in zip(descs, arrays, strict=False)
    ]


def joined_batch(batches: Sequence[Any]) -> DataBatch:
    """Return one batch from those of several devices."""

    def joined(kind: str) -> list | None:
        lists = [getattr(batch, kind) for batch in batches]
        if not lists[0]:
            return None
        here = lists[0][0].context
        return [
            nd.concat(*(part.as_in_context(here) for part in parts), dim=0)
            for parts in zip(*lists, strict=True)
        ]

    return DataBatch(joined("data"), joined("label"))
