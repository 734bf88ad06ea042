"""MXNet's module of `meshgrid`."""

from __future__ import annotations

from typing import Any

from .multiarray import ndarray

__all__ = ["meshgrid"]


def meshgrid(*xi: ndarray, **kwargs: Any) -> list[ndarray]:
    """Return coordinate matrices from coordinate vectors.

    Parameters
    ----------
    xi
        The vectors.
    indexing : {'xy', 'ij'}
        Cartesian (default) or matrix order of the axes.
    sparse : bool
        Whether to return arrays that are not broadcast.
    copy : bool
        Only True is supported.

    >>> x, y = mx.np.meshgrid(mx.np.arange(3), mx.np.arange(2))
    >>> x.shape
    (2, 3)
    """
    from . import broadcast_arrays

    indexing = kwargs.pop("indexing", "xy")
    sparse = kwargs.pop("sparse", False)
    if not kwargs.pop("copy", True):
        raise NotImplementedError("meshgrid: copy=False is not supported.")
    if kwargs:
        raise TypeError(f"meshgrid() got an unexpected keyword argument {next(iter(kwargs))!r}")
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    ndim = len(xi)
    positions = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        positions[:2] = [1, 0]
    axes: list[Any] = [
        x.reshape(tuple(-1 if axis == position else 1 for axis in range(ndim)))
        for x, position in zip(xi, positions, strict=True)
    ]
    return axes if sparse else broadcast_arrays(*axes)
