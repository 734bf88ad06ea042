"""Operators that order elements: sorting, the largest, and counting in bins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from ....error import MXNetError, ShapeError
from ...attributes import DType, Floats, Shape
from ...declare import op
from ...shapes import UNKNOWN, TypePattern
from ..shaping.shape_changing import axis_within, product

if TYPE_CHECKING:
    from ...declare import Op

# Up to this length MXNet keeps equal elements in their order; so does a stable sort.
STABLE_LENGTH = 16


def _line(data: Tensor, axis: int | None, name: str) -> tuple[Tensor, int]:
    """Return what is ordered and along which axis; None means everything in one line."""
    return (data.reshape(-1), 0) if axis is None else (data, axis_within(axis, data.ndim, name))


def _sorted(data: Tensor, axis: int | None, is_ascend: bool, name: str) -> tuple[Tensor, Tensor]:
    data, axis = _line(data, axis, name)
    return torch.sort(data, dim=axis, descending=not is_ascend, stable=True)


@op("sort", "_npi_sort", total=2, method=True)
def sort(data: Tensor, *, axis: int | None = -1, is_ascend: bool = True) -> Tensor:
    """Sort along an axis; ``axis=None`` sorts all elements into one line.

    Parameters
    ----------
    axis
        The axis to sort along; None sorts the flattened array.

    >>> mx.nd.sort(mx.nd.array([3, 1, 2])).asnumpy()
    array([1., 2., 3.], dtype=float32)
    """
    return _sorted(data, axis, is_ascend, "sort")[0]


@op("argsort", "_npi_argsort", types="T -> @dtype", method=True, precision="full")
def argsort(
    data: Tensor, *, axis: int | None = -1, is_ascend: bool = True, dtype: DType = torch.float32
) -> Tensor:
    """Return the indices that would sort along an axis, as float32 unless specified otherwise.

    Parameters
    ----------
    axis
        The axis to sort along; None sorts the flattened array.
    dtype
        Data type of the indices.

    >>> mx.nd.argsort(mx.nd.array([3, 1, 2])).asnumpy()
    array([1., 2., 0.], dtype=float32)
    """
    return _sorted(data.detach(), axis, is_ascend, "argsort")[1].to(dtype)


@sort.infer_outputs
@argsort.infer_outputs
def sort_shape(data: Shape | None, *, axis: int | None, **_: object) -> Shape | None:
    """As the data, or one line."""
    if data is None or axis is not None:
        return data
    return (product(data),)


class TopkTypes(TypePattern):
    """Values and masks have the data's type, indices the attribute's."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer the outputs; the type of values is that of the data."""
        kind, given = attrs["ret_typ"], ins[0]
        if kind == "indices":
            return ins, [attrs["dtype"]]
        given = given if given is not None else outs[0]
        return [given], [given, attrs["dtype"]][: len(outs)]


def _count(size: int, k: int) -> int:
    """Return how many are wanted; k < 1 means all."""
    if k > size:
        raise ShapeError(f"topk: k must be smaller than {size} or equal, get k = {k}")
    return size if k < 1 else k


@op(
    "topk",
    "_npx_topk",
    outputs=lambda a: 2 if a["ret_typ"] == "both" else 1,
    total=lambda a: 2 if a["ret_typ"] in ("both", "value") else 1,
    method=True,
    precision="full",
)
def topk(
    data: Tensor,
    *,
    axis: int | None = -1,
    k: int = 1,
    ret_typ: Literal["both", "indices", "mask", "value"] = "indices",
    is_ascend: bool = False,
    dtype: DType = torch.float32,
) -> Tensor | tuple[Tensor, Tensor]:
    """Find the ``k`` largest (or, ascending, smallest) along an axis: where or what they are.

    Parameters
    ----------
    axis
        The axis to search along; None searches the flattened array.
    k
        How many to find; 0 means all.
    ret_typ
        Whether to return ``indices``, ``value`` (the elements), ``both``, or a ``mask`` of 0 and 1.
    is_ascend
        Whether to find the smallest.
    dtype
        Data type of the indices.

    >>> mx.nd.topk(mx.nd.array([3, 1, 2]), k=2).asnumpy()
    array([0., 2.], dtype=float32)
    """
    line, axis = _line(data, axis, "topk")
    size = line.shape[axis]
    k = _count(size, k)
    if ret_typ in ("indices", "mask"):
        line = line.detach()
    if k == size or size <= STABLE_LENGTH:
        values, indices = torch.sort(line, dim=axis, descending=not is_ascend, stable=True)
        if k < size:
            values, indices = values.narrow(axis, 0, k), indices.narrow(axis, 0, k)
            values = values.clone() if ret_typ in ("both", "value") else values
    else:
        values, indices = torch.topk(line, k, dim=axis, largest=not is_ascend)
    if ret_typ == "value":
        return values
    if ret_typ == "mask":
        return torch.zeros_like(line).scatter_(axis, indices, 1).reshape(data.shape)
    indices = indices.to(dtype)
    return indices if ret_typ == "indices" else (values, indices)


topk.type_pattern = TopkTypes(None)


@topk.infer_outputs
def topk_shape(
    data: Shape | None, *, axis: int | None, k: int, ret_typ: str, **_: object
) -> Shape | None:
    """Change the size of the axis to ``k``; a mask is as the data."""
    if data is None or ret_typ == "mask":
        return data
    line = (product(data),) if axis is None else data
    at = 0 if axis is None else axis_within(axis, len(data), "topk")
    count = _count(line[at], k) if line[at] != UNKNOWN else k if k > 0 else UNKNOWN
    return (*line[:at], count, *line[at + 1 :])


@op(
    "_histogram",
    "_npi_histogram",
    outputs=2,
    optional={"bins": lambda a: a["bin_cnt"] is None},
    types="T T -> int64 T",
)
def histogram(
    data: Tensor,
    bins: Tensor | None = None,
    *,
    bin_cnt: int | None = None,
    range: Floats | None = None,
) -> tuple[Tensor, Tensor]:
    """Count elements in bins: between the given edges, or in equal parts of a range.

    Parameters
    ----------
    bins
        Edges of the bins, ascending.
    bin_cnt
        Number of equal bins, in place of `bins`.
    range
        Smallest and largest number that the equal bins cover.

    >>> x = mx.nd.array([0, 1, 2, 2, 5])
    >>> counts, edges = mx.nd._internal._histogram(x, bin_cnt=2, range=(0, 4))
    >>> counts.asnumpy(), edges.asnumpy()
    (array([2, 2]), array([0., 2., 4.], dtype=float32))
    """
    if (bin_cnt is None) != (range is None) or (bins is None) == (bin_cnt is None):
        raise MXNetError(
            "_histogram: bin_cnt and range must be given together, or an array of bins instead."
        )
    if bins is None:
        assert bin_cnt is not None and range is not None
        low, high = range
        steps = torch.arange(bin_cnt + 1, dtype=torch.float64, device=data.device)
        bins = (low + steps * ((high - low) / bin_cnt)).to(data.dtype)
    else:
        bins = bins.clone()
    flat, count = data.detach().reshape(-1), len(bins) - 1
    flat = flat[(flat >= bins[0]) & (flat <= bins[-1])]
    # The last bin holds its right edge too.
    places = (torch.searchsorted(bins.detach(), flat, right=True) - 1).clamp(max=count - 1)
    return torch.bincount(places, minlength=count), bins


@histogram.infer_outputs
def histogram_shapes(
    data: Shape | None, bins: Shape | None, *, bin_cnt: int | None, **_: object
) -> list[Shape] | None:
    """One count for each bin, one edge more."""
    if bin_cnt is not None:
        return [(bin_cnt,), (bin_cnt + 1,)]
    if bins is None or UNKNOWN in bins:
        return None
    return [(bins[0] - 1,), bins]
