"""Functions that dispatch to several operators: arithmetic, concatenation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import accelerator
from ..error import InvalidValue
from ..ops.tensor.arithmetic import OPERATIONS, Operation
from ..ops.tensor.shape_changing import transpose
from ..runtime.apply import apply
from ..runtime.array import Handle
from ..runtime.composites.functions import split_v2 as _split_v2
from ..runtime.composites.namespace import bind
from .codegen import F
from .creation import array
from .ndarray import NDArray
from .operator_overloads import NUMBERS, binary_overload

if TYPE_CHECKING:
    from ._stubs.functions import *  # noqa: F403

OPERANDS = (Handle, *NUMBERS)


def _two_sided(operation: Operation) -> Callable:
    overload = binary_overload(NDArray, operation)
    reversed_overload = binary_overload(NDArray, operation, reverse=True)
    on_numbers = operation.on_numbers

    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, Handle) and isinstance(rhs, OPERANDS):
            output = overload(lhs, rhs)
            return output.as_np_ndarray() if lhs.is_numpy else output
        if isinstance(rhs, Handle) and isinstance(lhs, NUMBERS):
            output = reversed_overload(rhs, lhs)
            return output.as_np_ndarray() if rhs.is_numpy else output
        if isinstance(lhs, NUMBERS) and isinstance(rhs, NUMBERS):
            return on_numbers(lhs, rhs)
        raise TypeError(f"types ({type(lhs)}, {type(rhs)}) not supported: use NDArray or numbers.")

    function.__name__ = function.__qualname__ = operation.name
    function.__doc__ = operation.docstring
    return function


_TWO_SIDED = {operation.name: _two_sided(operation) for operation in OPERATIONS}
globals().update(_TWO_SIDED)
true_divide = _TWO_SIDED["divide"]
_power = _TWO_SIDED["power"]


def power(base: Any, exp: Any) -> Any:
    """Return base to the power of exp, for arrays (broadcast) and numbers.

    Parameters
    ----------
    base
        An array or a number.
    exp
        An array or a number; the shapes of two arrays broadcast.

    >>> mx.nd.power(2, mx.nd.array([3])).asnumpy()
    array([8.], dtype=float32)
    """
    return _power(base, exp)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Concatenate arrays along an axis.

    Parameters
    ----------
    arrays
        The arrays; they have the same data type and the same sizes of all other axes.
    axis
        Axis to concatenate along.
    always_copy
        Whether to copy a single array too.

    >>> mx.nd.concatenate([mx.nd.ones((1, 2)), mx.nd.zeros((1, 2))]).shape
    (2, 2)
    """
    arrays = list(arrays)
    if not arrays or not all(isinstance(a, NDArray) for a in arrays):
        raise InvalidValue("concatenate needs a list of at least one NDArray.")
    first = arrays[0]
    for other in arrays[1:]:
        alike = other.ndim == first.ndim and other.dtype == first.dtype
        if not alike or _without(other.shape, axis) != _without(first.shape, axis):
            raise InvalidValue(
                f"concatenate needs arrays of one type whose shapes differ along axis {axis} only: "
                f"got {first.shape} {first.dtype.__name__}, {other.shape} {other.dtype.__name__}."
            )
    if len(arrays) == 1 and not always_copy:
        return arrays[0]
    return F.Concat(*arrays, dim=axis)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    axis %= max(len(shape), 1)
    return shape[:axis] + shape[axis + 1 :]


def moveaxis(tensor: NDArray, source: Any, destination: Any) -> NDArray:
    """Move axes to new positions; the others keep their order.

    Parameters
    ----------
    tensor
        The array.
    source
        Positions of the axes to move.
    destination
        New positions of these axes.

    >>> mx.nd.moveaxis(mx.nd.zeros((1, 2, 3)), 0, -1).shape
    (2, 3, 1)
    """
    # Let NumPy move the axes of a dummy array whose sizes are the axis numbers.
    stand_in = np.empty(tuple(range(tensor.ndim)) if tensor.ndim else (), dtype=np.int8)
    axes = np.moveaxis(stand_in, source, destination).shape
    return apply(transpose, (tensor,), {"axes": axes}, cls=type(tensor))


split_v2 = bind(_split_v2, F, __name__)


def histogram(a: NDArray, bins: Any = 10, range: Any = None) -> Sequence[NDArray]:
    """Return the counts of values in bins, and the bin edges.

    Parameters
    ----------
    a
        The array.
    bins
        Number of equal bins, or an array of their edges.
    range
        Lower and upper limit of the bins; by default the smallest and largest element.

    >>> mx.nd.histogram(mx.nd.array([1, 2, 2]), bins=2, range=(1, 3))[0].asnumpy()
    array([1, 2])
    """
    if isinstance(bins, Handle):
        return F._histogram(a, bins)
    if not isinstance(bins, int | np.integer):
        raise InvalidValue(f"bins must be an integer or an NDArray, not {type(bins)}.")
    if range is None:  # MXNet calls NumPy here, and converts the result to float32
        counts, edges = np.histogram(a.asnumpy().astype("float64"), bins=bins)
        return array(counts), array(edges)
    return F._histogram(a, bin_cnt=bins, range=range)


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Write the one-hot rows of the indices into `out` (an old form of `one_hot`).

    Parameters
    ----------
    indices
        The indices, a vector.
    out
        Matrix to write into, one row per index.

    >>> mx.nd.onehot_encode(mx.nd.array([1, 0]), mx.nd.zeros((2, 2))).asnumpy()
    array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    return F.one_hot(indices, depth=out.shape[1], dtype=out.dtype, out=out)


def waitall() -> None:
    """Wait for all pending work on all devices.

    >>> y = mx.nd.ones(2) + 1
    >>> mx.nd.waitall()
    """
    accelerator.synchronize_all()


def imdecode(
    str_img: bytes,
    clip_rect: tuple = (0, 0, 0, 0),
    out: NDArray | None = None,
    index: int = 0,
    channels: int = 3,
    mean: NDArray | None = None,
) -> NDArray:
    """Decode an image (an old form: use `mx.image.imdecode`).

    Parameters
    ----------
    str_img
        Bytes of the image file.
    clip_rect
        Rectangle to crop: left, top, right and bottom; zeros mean the whole image.
    out
        Batch to write the image into.
    index
        Position in that batch.
    channels
        3 for color, 1 for gray.
    mean
        Array to subtract.

    >>> blank = mx.recordio.pack_img(mx.recordio.IRHeader(0, 0, 0, 0), np.zeros((4, 6, 3), "uint8"))
    >>> mx.nd.imdecode(mx.recordio.unpack(blank)[1]).shape
    (1, 3, 4, 6)
    """
    from ..image import imdecode as decode  # lazy import: image builds on arrays

    image = decode(str_img, flag=0 if channels == 1 else 1).astype("float32")
    left, top, right, bottom = clip_rect
    if right > left and bottom > top:
        image = image[top:bottom, left:right]
    image = image.transpose((2, 0, 1))
    if mean is not None:
        image = image - mean
    if out is None:
        return image.expand_dims(0)
    out[index] = image
    return out


__all__ = [
    *_TWO_SIDED,
    "concatenate",
    "histogram",
    "imdecode",
    "moveaxis",
    "onehot_encode",
    "split_v2",
    "true_divide",
    "waitall",
]
