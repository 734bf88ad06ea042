"""How arrays print: MXNet's text, and a table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .ndarray import NDArray

_HTML_ROWS, _HTML_COLUMNS = 12, 16


def label(array: NDArray) -> str:
    """Return the line under the values: class, shape, context.

    >>> label(mx.nd.zeros((2, 3)))
    '<NDArray 2x3 @cpu(0)>'
    """
    shape = "x".join(str(n) for n in array.shape)
    return f"<{type(array).__name__} {shape} @{array.context}>"


def text(array: NDArray) -> str:
    """Return the values as NumPy prints them, and the label."""
    return f"\n{array.asnumpy()}\n{label(array)}"


def html(array: NDArray) -> str:
    """Return a small table for vectors and matrices, preformatted text for the rest."""
    values = array.asnumpy()
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
