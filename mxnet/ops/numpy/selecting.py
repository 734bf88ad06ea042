"""NumPy's operators that select elements by conditions and values."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Shape
from ..declare import op
from ..families import check_same_dtype, number, refuse_bool
from ..shapes import UNKNOWN, broadcast, same
from ..tensor.shape_changing import axis_within


def _chosen(condition: Tensor) -> Tensor:
    return condition if condition.dtype is torch.bool else condition != 0


@op("_npi_where", types="C T T -> T", shape=broadcast, without_gradient=("condition",))
def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Select elements of ``x`` if the condition is not 0, else of ``y``; all three broadcast.

    Parameters
    ----------
    x
        Values for true conditions.
    y
        Values for false conditions.

    >>> x, y = mx.nd.array([1, 2]), mx.nd.array([3])
    >>> mx.nd._internal._npi_where(mx.nd.array([1, 0]), x, y).asnumpy()
    array([1., 3.], dtype=float32)
    """
    check_same_dtype("_npi_where", x, y)
    return torch.where(_chosen(condition), x, y)


@op("_npi_where_lscalar", types="C T -> T", shape=broadcast, without_gradient=("condition",))
def where_lscalar(condition: Tensor, x: Tensor, *, scalar: float = 0.0) -> Tensor:
    """Select the number if the condition is not 0, else elements of ``x``.

    Parameters
    ----------
    x
        Values for false conditions.
    scalar
        Values for true conditions.

    >>> x = mx.nd.array([1, 2])
    >>> mx.nd._internal._npi_where_lscalar(mx.nd.array([1, 0]), x, scalar=9).asnumpy()
    array([9., 2.], dtype=float32)
    """
    return torch.where(_chosen(condition), number(scalar, x.dtype).to(x.device), x)


@op("_npi_where_rscalar", types="C T -> T", shape=broadcast, without_gradient=("condition",))
def where_rscalar(condition: Tensor, y: Tensor, *, scalar: float = 0.0) -> Tensor:
    """Select elements of ``y`` if the condition is not 0, else the number.

    Parameters
    ----------
    y
        Values for true conditions.
    scalar
        Values for false conditions.

    >>> y = mx.nd.array([1, 2])
    >>> mx.nd._internal._npi_where_rscalar(mx.nd.array([1, 0]), y, scalar=9).asnumpy()
    array([1., 9.], dtype=float32)
    """
    return torch.where(_chosen(condition), y, number(scalar, y.dtype).to(y.device))


@op("_npi_where_scalar2", types="C -> float32", shape=same)
def where_scalar2(condition: Tensor, *, x: float = 0.0, y: float = 0.0) -> Tensor:
    """Select one of two numbers by the condition, in float32.

    Parameters
    ----------
    x
        Values for true conditions.
    y
        Values for false conditions.

    >>> mx.nd._internal._npi_where_scalar2(mx.nd.array([1, 0]), x=2, y=3).asnumpy()
    array([2., 3.], dtype=float32)
    """
    pair = (number(v, torch.float32).to(condition.device) for v in (x, y))
    return torch.where(_chosen(condition), *pair)


def _mask(name: str, data: Tensor, mask: Tensor, start_axis: int) -> Tensor:
    """Return the mask with all axes of the data; raise if it does not match."""
    end = start_axis + mask.ndim
    if data.shape[start_axis:end] != mask.shape:
        raise ShapeError(
            f"{name}: the mask {list(mask.shape)} does not fit {list(data.shape)} from axis "
            f"{start_axis}."
        )
    return _chosen(mask).reshape((*mask.shape, *(1,) * (data.ndim - end)))


@op("_npi_boolean_mask_assign_scalar", types="T M -> T", auto_inputs=False)
def boolean_mask_assign_scalar(
    data: Tensor, mask: Tensor, *, value: float = 0.0, start_axis: int = 0
) -> Tensor:
    """Assign a number to elements selected by the mask, which covers axes from ``start_axis``.

    Parameters
    ----------
    value
        The number.

    >>> x, mask = mx.nd.array([1, 2]), mx.nd.array([0, 1], dtype="bool")
    >>> mx.nd._internal._npi_boolean_mask_assign_scalar(x, mask, value=9).asnumpy()
    array([1., 9.], dtype=float32)
    """
    chosen = _mask("_npi_boolean_mask_assign_scalar", data, mask, start_axis)
    return torch.where(chosen, number(value, data.dtype).to(data.device), data)


@op("_npi_boolean_mask_assign_tensor", types="T M T -> T", auto_inputs=False)
def boolean_mask_assign_tensor(
    data: Tensor, mask: Tensor, value: Tensor, *, start_axis: int = 0
) -> Tensor:
    """Assign the elements of ``value``, in order, to elements selected by the mask.

    Parameters
    ----------
    value
        The new elements, in order.

    >>> x, mask = mx.nd.array([1, 2, 3]), mx.nd.array([1, 0, 1], dtype="bool")
    >>> value = mx.nd.array([8, 9])
    >>> mx.nd._internal._npi_boolean_mask_assign_tensor(x, mask, value).asnumpy()
    array([8., 2., 9.], dtype=float32)
    """
    chosen = _mask("_npi_boolean_mask_assign_tensor", data, mask, start_axis)
    check_same_dtype("_npi_boolean_mask_assign_tensor", data, value)
    if not data.ndim:  # torch does not support indices of a scalar
        return torch.where(chosen, value.reshape(()), data)
    positions = _chosen(mask).nonzero(as_tuple=True)
    output = data.clone()
    output[(slice(None),) * start_axis + positions] = value
    return output


def _as_data(*shapes: Shape | None, **_: float) -> Shape | None:
    return shapes[0]


for _op in (boolean_mask_assign_scalar, boolean_mask_assign_tensor):
    _op.infer_outputs(_as_data)


def _unique_outputs(attrs: dict) -> int:
    return 1 + attrs["return_index"] + attrs["return_inverse"] + attrs["return_counts"]


@op(
    "_npi_unique",
    types="T -> T int64",
    outputs=_unique_outputs,
    value_dependent=True,
    names_single_input=True,
)
def unique(
    data: Tensor,
    *,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Return the sorted distinct elements, or slices along an axis.

    Optionally also returns first indices, inverse indices and counts.

    Parameters
    ----------
    return_index
        Whether to return the first index of each unique element.
    return_inverse
        Whether to return the index of each element among the unique ones.
    return_counts
        Whether to return the count of each unique element.
    axis
        Axis of the slices to compare; None: compare elements.

    >>> mx.nd._internal._npi_unique(mx.nd.array([3, 1, 3])).asnumpy()
    array([1., 3.], dtype=float32)
    """
    if data.dtype is torch.bool:
        raise refuse_bool("_npi_unique")
    flat = data.detach().reshape(-1) if axis is None else data.detach()
    dim = axis_within(0 if axis is None else axis, flat.ndim, "_npi_unique")
    # torch.unique(dim=...) does not sort NaN correctly: use it only if an axis is given.
    along = None if axis is None else dim
    values, inverse, counts = torch.unique(flat, return_inverse=True, return_counts=True, dim=along)
    inverse = inverse.reshape(-1)
    items = [values]
    if return_index:
        positions = torch.arange(inverse.numel(), device=data.device)
        first = torch.full_like(counts, inverse.numel())
        items.append(first.scatter_reduce(0, inverse, positions, "amin"))
    if return_inverse:
        items.append(inverse)
    if return_counts:
        items.append(counts)
    return tuple(items) if len(items) > 1 else values


@unique.infer_outputs
def unique_shapes(
    data: Shape | None, *, return_inverse: bool, axis: int | None, **others: bool
) -> list[Shape] | None:
    """Only the number of inverse indices is known statically."""
    if data is None:
        return None
    along = (UNKNOWN,)
    first = along if axis is None else (*data[:axis], UNKNOWN, *data[axis + 1 :])
    sizes = data if axis is None else data[axis : axis + 1 or None]
    size = UNKNOWN if UNKNOWN in sizes else math.prod(sizes)
    items = [first, along] if others["return_index"] else [first]
    items += [(size,)] if return_inverse else []
    return items + ([along] if others["return_counts"] else [])


@op("_npi_share_memory", types="T U -> bool")
def share_memory(a: Tensor, b: Tensor) -> Tensor:
    """Return whether two arrays overlap in memory.

    Parameters
    ----------
    a
        The first array.
    b
        The second array.

    >>> x = mx.nd.ones((2,))
    >>> mx.nd._internal._npi_share_memory(x, x).asnumpy()
    array(True)
    """
    if a.is_meta:
        return torch.empty((), dtype=torch.bool, device="meta")
    overlap = bool(a.numel() and b.numel()) and _overlap(a, b)
    return torch.tensor(overlap, device=a.device)


def _overlap(a: Tensor, b: Tensor) -> bool:
    if a.device != b.device:
        return False
    (first, last), (start, stop) = _span(a), _span(b)
    return first < stop and start < last


def _span(x: Tensor) -> tuple[int, int]:
    """Return the addresses of the first byte and one past the last."""
    reach = sum((n - 1) * s for n, s in zip(x.shape, x.stride(), strict=True))
    return x.data_ptr(), x.data_ptr() + (reach + 1) * x.element_size()


@share_memory.infer_outputs
def share_memory_shape(a: Shape | None, b: Shape | None) -> Shape:
    """A scalar."""
    return ()
