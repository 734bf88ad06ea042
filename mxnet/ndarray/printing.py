"""Printing of arrays, and the array class of `asnumpy`."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes

if TYPE_CHECKING:
    from .ndarray import NDArray

_HTML_ROWS, _HTML_COLUMNS = 12, 16


def label(array: NDArray) -> str:
    """Return the last line: class, shape, context.

    >>> label(mx.nd.zeros((2, 3)))
    '<NDArray 2x3 @cpu(0)>'
    """
    shape = "x".join(str(n) for n in array.shape)
    return f"<{type(array).__name__} {shape} @{array.context}>"


def values_to_print(array: NDArray) -> np.ndarray:
    """Return the values; bfloat16 as float32, because NumPy lacks it."""
    values = array.asnumpy()
    if not dtypes.is_bfloat16(values.dtype):
        return values
    return (values.view(np.uint16).astype(np.uint32) << 16).view(np.float32)


def text(array: NDArray) -> str:
    """Return the text of the values as in NumPy, and the label."""
    return f"\n{values_to_print(array)}\n{label(array)}"


def html(array: NDArray) -> str:
    """Return a table for vectors and matrices, preformatted text for others."""
    values = values_to_print(array)
    caption = f"<div><code>{escape(label(array))} {escape(str(values.dtype))}</code></div>"
    if values.ndim not in (1, 2) or values.size == 0:
        return f"<pre>{escape(str(values))}</pre>{caption}"
    rows = np.atleast_2d(values)
    lines = []
    for row in rows[:_HTML_ROWS]:
        cells = "".join(f"<td>{escape(f'{v:.6g}')}</td>" for v in row[:_HTML_COLUMNS])
        lines.append(f"<tr>{cells}{'<td>…</td>' if len(row) > _HTML_COLUMNS else ''}</tr>")
    if len(rows) > _HTML_ROWS:
        lines.append("<tr><td>…</td></tr>")
    return f"<table>{''.join(lines)}</table>{caption}"


# -- the array class of `asnumpy`
# -----------------------------------------------------------------------


class OneElement(np.ndarray):
    """A NumPy array of one element that supports ``float`` and ``int``.

    NumPy raises for shape (1,), but programs print ``loss.mean().asnumpy()`` with ``'%f'``.

    >>> 'loss %.1f' % mx.nd.array([1.5]).asnumpy()
    'loss 1.5'
    """

    def _number(self) -> float:
        if self.size != 1:
            raise TypeError("only arrays of one element can be converted to Python scalars")
        return self.item()

    def __float__(self) -> float:
        return float(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __array_wrap__(
        self, array: np.ndarray, context: Any = None, return_scalar: bool = False
    ) -> np.ndarray:
        """Return NumPy scalars from `sum` and other reductions instead of 0-d arrays."""
        wrapped = super().__array_wrap__(array, context, return_scalar)
        return wrapped[()] if return_scalar else wrapped

    def __repr__(self) -> str:
        return repr(self.view(np.ndarray))

    def __reduce__(self) -> str | tuple[Any, ...]:
        return self.view(np.ndarray).__reduce__()


def convertible(array: np.ndarray) -> np.ndarray:
    """Return an array of one element as `OneElement`, others unchanged."""
    return array.view(OneElement) if array.size == 1 and array.ndim else array
