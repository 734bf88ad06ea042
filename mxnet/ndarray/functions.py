"""Functions of arrays and numbers that are more than one operator: two-sided arithmetic, joins."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from ..error import InvalidValue
from ..imperative.apply import apply
from ..imperative.handle import Handle
from ..ops import registry
from .creation import array
from .ndarray import NDArray
from .operator_overloads import NUMBERS, binary_overload

OPERANDS = (Handle, *NUMBERS)

# name: (array with array, array with number, number with array, number with number, sentence)
_TWO_SIDED = {
    "add": ("broadcast_add", "_plus_scalar", "_plus_scalar", operator.add, "the sum"),
    "subtract": (
        "broadcast_sub",
        "_minus_scalar",
        "_rminus_scalar",
        operator.sub,
        "the difference",
    ),
    "multiply": ("broadcast_mul", "_mul_scalar", "_mul_scalar", operator.mul, "the product"),
    "divide": ("broadcast_div", "_div_scalar", "_rdiv_scalar", operator.truediv, "the quotient"),
    "modulo": ("broadcast_mod", "_mod_scalar", "_rmod_scalar", operator.mod, "the remainder"),
    "power": ("broadcast_power", "_power_scalar", "_rpower_scalar", operator.pow, "the power"),
    "maximum": ("broadcast_maximum", "_maximum_scalar", "_maximum_scalar", max, "the larger"),
    "minimum": ("broadcast_minimum", "_minimum_scalar", "_minimum_scalar", min, "the smaller"),
    "hypot": ("broadcast_hypot", "_hypot_scalar", "_hypot_scalar", np.hypot, "the hypotenuse"),
    "equal": ("broadcast_equal", "_equal_scalar", "_equal_scalar", operator.eq, "1 where equal"),
    "not_equal": (
        "broadcast_not_equal",
        "_not_equal_scalar",
        "_not_equal_scalar",
        operator.ne,
        "1 where different",
    ),
    "greater": (
        "broadcast_greater",
        "_greater_scalar",
        "_lesser_scalar",
        operator.gt,
        "1 where lhs is greater",
    ),
    "greater_equal": (
        "broadcast_greater_equal",
        "_greater_equal_scalar",
        "_lesser_equal_scalar",
        operator.ge,
        "1 where lhs is not less",
    ),
    "lesser": (
        "broadcast_lesser",
        "_lesser_scalar",
        "_greater_scalar",
        operator.lt,
        "1 where lhs is less",
    ),
    "lesser_equal": (
        "broadcast_lesser_equal",
        "_lesser_equal_scalar",
        "_greater_equal_scalar",
        operator.le,
        "1 where lhs is not greater",
    ),
    "logical_and": (
        "broadcast_logical_and",
        "_logical_and_scalar",
        "_logical_and_scalar",
        lambda x, y: 1 if x and y else 0,
        "1 where both are not zero",
    ),
    "logical_or": (
        "broadcast_logical_or",
        "_logical_or_scalar",
        "_logical_or_scalar",
        lambda x, y: 1 if x or y else 0,
        "1 where one is not zero",
    ),
    "logical_xor": (
        "broadcast_logical_xor",
        "_logical_xor_scalar",
        "_logical_xor_scalar",
        lambda x, y: 1 if bool(x) ^ bool(y) else 0,
        "1 where exactly one is not zero",
    ),
}


def _two_sided(name: str) -> Callable:
    both, with_number, reverse, on_numbers, sentence = _TWO_SIDED[name]
    sign, reversed_sign = (
        binary_overload(NDArray, both, with_number),
        binary_overload(NDArray, both, reverse),
    )

    def function(lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, Handle) and isinstance(rhs, OPERANDS):
            return sign(lhs, rhs)
        if isinstance(rhs, Handle) and isinstance(lhs, NUMBERS):
            return reversed_sign(rhs, lhs)
        if isinstance(lhs, NUMBERS) and isinstance(rhs, NUMBERS):
            return on_numbers(lhs, rhs)
        raise TypeError(f"types ({type(lhs)}, {type(rhs)}) not supported: use NDArray or numbers.")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return {sentence} of two arrays (broadcast), or of an array and a number."
    return function


add = _two_sided("add")
subtract = _two_sided("subtract")
multiply = _two_sided("multiply")
divide = true_divide = _two_sided("divide")
modulo = _two_sided("modulo")
maximum = _two_sided("maximum")
minimum = _two_sided("minimum")
hypot = _two_sided("hypot")
equal = _two_sided("equal")
not_equal = _two_sided("not_equal")
greater = _two_sided("greater")
greater_equal = _two_sided("greater_equal")
lesser = _two_sided("lesser")
lesser_equal = _two_sided("lesser_equal")
logical_and = _two_sided("logical_and")
logical_or = _two_sided("logical_or")
logical_xor = _two_sided("logical_xor")
_power = _two_sided("power")


def power(base: Any, exp: Any) -> Any:
    """Return base to the power of exp, for arrays (broadcast) and numbers.

    >>> mx.nd.power(2, mx.nd.array([3])).asnumpy()
    array([8.], dtype=float32)
    """
    return _power(base, exp)


def concatenate(arrays: Sequence[NDArray], axis: int = 0, always_copy: bool = True) -> NDArray:
    """Join arrays along an axis; a single one is copied only if `always_copy`.

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
    return apply(registry.get("Concat"), arrays, {"dim": axis}, cls=NDArray)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    axis %= max(len(shape), 1)
    return shape[:axis] + shape[axis + 1 :]


def moveaxis(tensor: NDArray, source: Any, destination: Any) -> NDArray:
    """Move axes to new positions; the others keep their order.

    >>> mx.nd.moveaxis(mx.nd.zeros((1, 2, 3)), 0, -1).shape
    (2, 3, 1)
    """
    # NumPy moves the axes of a stand-in whose sizes are the axis numbers.
    stand_in = np.empty(tuple(range(tensor.ndim)) if tensor.ndim else (), dtype=np.int8)
    axes = np.moveaxis(stand_in, source, destination).shape
    return apply(registry.get("transpose"), (tensor,), {"axes": axes}, cls=type(tensor))


def split_v2(
    ary: NDArray, indices_or_sections: Any, axis: int = 0, squeeze_axis: bool = False
) -> NDArray | list[NDArray]:
    """Split into equal sections, or at the given indices; one part comes without a list.

    >>> [p.shape for p in mx.nd.split_v2(mx.nd.zeros((4, 2)), (1, 3))]
    [(1, 2), (2, 2), (1, 2)]
    """
    size = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        sections = indices_or_sections
        if size % sections:
            raise ValueError("array split does not result in an equal division")
        indices: tuple = tuple(range(0, size, size // sections))
    else:
        sections, indices = 0, (0, *indices_or_sections)
    raw = {"indices": indices, "axis": axis, "squeeze_axis": squeeze_axis, "sections": sections}
    return apply(registry.get("_split_v2"), (ary,), raw, cls=type(ary))


def histogram(a: NDArray, bins: Any = 10, range: Any = None) -> Sequence[NDArray]:
    """Return the counts of values in bins, and the bin edges.

    >>> mx.nd.histogram(mx.nd.array([1, 2, 2]), bins=2, range=(1, 3))[0].asnumpy()
    array([1, 2])
    """
    if isinstance(bins, Handle):
        return apply(registry.get("_histogram"), (a, bins), None, cls=NDArray)
    if range is None:  # MXNet asks NumPy then, and makes float32 of its answer
        counts, edges = np.histogram(a.asnumpy().astype("float64"), bins=bins)
        return array(counts), array(edges)
    raw = {"bin_cnt": bins, "range": range}
    return apply(registry.get("_histogram"), (a, None), raw, cls=NDArray)


def onehot_encode(indices: NDArray, out: NDArray) -> NDArray:
    """Write the one-hot rows of the indices into `out` (an old form of `one_hot`)."""
    raw = {"depth": out.shape[1], "dtype": out.dtype}
    return apply(registry.get("one_hot"), (indices,), raw, out, cls=NDArray)


def waitall() -> None:
    """Wait until all pending work on all devices is done."""
    if torch.cuda.is_initialized():  # before that nothing can be pending
        for number in range(torch.cuda.device_count()):
            torch.cuda.synchronize(number)


def imdecode(
    str_img: bytes,
    clip_rect: tuple = (0, 0, 0, 0),
    out: NDArray | None = None,
    index: int = 0,
    channels: int = 3,
    mean: NDArray | None = None,
) -> NDArray:
    """Decode an image (an old form: use `mx.image.imdecode`)."""
    from ..image import imdecode as decode  # the door to the room above

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
