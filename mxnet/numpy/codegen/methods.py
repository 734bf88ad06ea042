"""Methods of `np.ndarray` and of its symbol.

Each calls a function of the namespace in its first parameter, `mx.np` or `mx.sym.np`.
"""

from __future__ import annotations

from typing import Any


def all(np: Any, self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Return whether all elements over some axes are true."""
    return np.all(self, axis, keepdims, out)


def any(np: Any, self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Return whether any element over some axes is true."""
    return np.any(self, axis, keepdims, out)


def argmax(np: Any, self: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the index of the largest element, as int64."""
    return np.argmax(self, axis, out)


def argmin(np: Any, self: Any, axis: Any = None, out: Any = None) -> Any:
    """Return the index of the smallest element, as int64."""
    return np.argmin(self, axis, out)


def argsort(np: Any, self: Any, axis: Any = -1, kind: Any = None, order: str | None = None) -> Any:
    """Return the indices, as int64, that sort the array along an axis."""
    return np.argsort(self, axis, kind, order)


def broadcast_to(np: Any, self: Any, shape: Any) -> Any:
    """Return the array broadcast to a shape."""
    return np.broadcast_to(self, shape)


def clip(np: Any, self: Any, min: Any = None, max: Any = None, out: Any = None) -> Any:
    """Return the elements limited to an interval."""
    return np.clip(self, min, max, out)


def cumsum(np: Any, self: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Any:
    """Return cumulative sums along an axis."""
    return np.cumsum(self, axis, dtype, out)


def diag(np: Any, self: Any, k: Any = 0, **kwargs: Any) -> Any:
    """Return a diagonal of a matrix, or a matrix with this diagonal."""
    return np.diag(self, k)


def dot(np: Any, self: Any, b: Any, out: Any = None) -> Any:
    """Return the dot product with another array."""
    return np.dot(self, b, out)


def expand_dims(np: Any, self: Any, axis: Any) -> Any:
    """Return the array with a new axis of size 1."""
    return np.expand_dims(self, axis)


def flatten(np: Any, self: Any, order: str = "C") -> Any:
    """Return the elements as a vector."""
    return reshape(np, self, (-1,), order=order)


def flip(np: Any, self: Any, axis: Any = None) -> Any:
    """Return the elements in reverse order along some axes."""
    return np.flip(self, axis)


def max(np: Any, self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Return the largest element over some axes."""
    return np.max(self, axis, keepdims, out)


def mean(
    np: Any, self: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> Any:
    """Return the mean of elements over some axes."""
    return np.mean(self, axis, dtype, out, keepdims)


def min(np: Any, self: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """Return the smallest element over some axes."""
    return np.min(self, axis, keepdims, out)


def nonzero(np: Any, self: Any) -> Any:
    """Return the indices of elements that are not 0, one vector for each axis."""
    return np.nonzero(self)


def pad(np: Any, self: Any, pad_width: Any = None, mode: str = "constant", **kwargs: Any) -> Any:
    """Return the padded array."""
    return np.pad(self, pad_width, mode, **kwargs)


def prod(
    np: Any, self: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> Any:
    """Return the product of elements over some axes."""
    return np.prod(self, axis, dtype, out, keepdims)


def ravel(np: Any, self: Any, order: str = "C") -> Any:
    """Return the elements as a vector."""
    return np.ravel(self, order)


def repeat(np: Any, self: Any, repeats: Any, axis: Any = None) -> Any:
    """Return each element repeated."""
    return np.repeat(self, repeats, axis)


def reshape(np: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the array with a new shape; one size may be -1 (inferred).

    >>> mx.np.arange(4).reshape(2, -1).shape
    (2, 2)
    """
    order = kwargs.pop("order", "C")
    if order != "C":
        raise NotImplementedError(f"only supports C-order, while received {order}")
    shape = args or kwargs.pop("newshape", kwargs.pop("shape", None))
    if kwargs:
        raise TypeError(f"reshape() got an unexpected keyword argument {next(iter(kwargs))!r}")
    if shape is None:
        raise TypeError("reshape() takes exactly 1 argument (0 given)")
    if args and len(args) == 1 and isinstance(args[0], tuple | list):
        shape = tuple(args[0])
    return np.reshape(self, shape)


def round(np: Any, self: Any, decimals: int = 0, out: Any = None, **kwargs: Any) -> Any:
    """Return the elements rounded to a number of decimals."""
    return np.around(self, decimals, out)


def sort(np: Any, self: Any, axis: Any = -1, kind: Any = None, order: str | None = None) -> Any:
    """Return the elements in ascending order along an axis."""
    return np.sort(self, axis, kind, order)


def split(np: Any, self: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    """Split into equal parts, or at indices, along an axis."""
    return np.split(self, indices_or_sections, axis)


def squeeze(np: Any, self: Any, axis: Any = None) -> Any:
    """Return the array without axes of size 1."""
    return np.squeeze(self, axis)


def std(
    np: Any,
    self: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
) -> Any:
    """Return the standard deviation over some axes."""
    return np.std(self, axis, dtype, out, ddof, keepdims)


def sum(
    np: Any, self: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
) -> Any:
    """Return the sum of elements over some axes."""
    return np.sum(self, axis, dtype, keepdims, None, out)


def swapaxes(np: Any, self: Any, axis1: int, axis2: int) -> Any:
    """Return the array with two axes exchanged."""
    return np.swapaxes(self, axis1, axis2)


def take(np: Any, self: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    """Return the elements at some indices along an axis."""
    return np.take(self, indices, axis, mode)


def tile(np: Any, self: Any, reps: Any) -> Any:
    """Return the array tiled along each axis."""
    return np.tile(self, reps)


def transpose(np: Any, self: Any, *axes: Any) -> Any:
    """Return the array with its axes permuted; without axes they are reversed."""
    order: Any = axes
    if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], tuple | list)):
        order = axes[0]
    return np.transpose(self, tuple(order) if order else None)


def var(
    np: Any,
    self: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: int = 0,
    keepdims: bool = False,
) -> Any:
    """Return the variance over some axes."""
    return np.var(self, axis, dtype, out, ddof, keepdims)
