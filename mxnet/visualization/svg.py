"""`render_svg`: a drawing of a network as an SVG file, by Python alone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from ..symbol import Symbol
from .layout import Layout, layered
from .picture import Box, Picture, picture

LETTER = 7.2  # mean width of a letter
LINE = 16.0
BOX_HEIGHT = 44.0
STEP = 88.0  # from layer to layer
MARGIN = 20.0
_HEAD = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" '
    'viewBox="0 0 {w:.0f} {h:.0f}" font-family="Helvetica, Arial, sans-serif" font-size="12" '
    'text-anchor="middle">\n'
    '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
    'markerHeight="7" orient="auto"><path d="M0,0L10,5L0,10z" fill="#555"/></marker></defs>\n'
    '<rect width="100%" height="100%" fill="white"/>'
)


def render_svg(
    symbol: Symbol,
    path: str | Path,
    shape: Mapping[str, tuple[int, ...]] | None = None,
    dtype: Mapping[str, Any] | None = None,
    hide_weights: bool = True,
) -> str:
    """Write a drawing of the network to an SVG file and return its path.

    Parameters
    ----------
    symbol : Symbol
        The network.
    path
        The file to write.
    shape, dtype : dict, optional
        Shapes and types of the inputs; then arrows show those of the data.
    hide_weights
        Whether to leave out weights, biases and the like.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> print(mx.viz.render_svg(net, "net.svg"))
    net.svg
    """
    text = svg_text(picture(symbol, shape, dtype, hide_weights))
    Path(path).write_text(text, encoding="utf-8")
    return str(path)


def svg_text(shown: Picture) -> str:
    """Return the SVG text of a picture."""
    widths = {b.key: _width(b) for b in shown.boxes}
    layout = layered(shown, widths)
    depth = max(layout.layer.values(), default=0) + 1
    size = {
        "w": max(layout.width + 2 * MARGIN, 2 * MARGIN),
        "h": depth * STEP - (STEP - BOX_HEIGHT) + 2 * MARGIN,
    }
    arrows = [
        _arrow(layout, path, arrow.label)
        for path, arrow in zip(layout.paths, shown.arrows, strict=True)
    ]
    boxes = [_box(layout, box, widths[box.key]) for box in shown.boxes]
    return "\n".join([_HEAD.format(**size), *arrows, *boxes, "</svg>"]) + "\n"


def _width(box: Box) -> float:
    longest = max(len(line) for line in box.label.split("\n"))
    return max(72.0, longest * LETTER + 20)


def _box(layout: Layout, box: Box, width: float) -> str:
    x, top = layout.x[box.key] + MARGIN, layout.layer[box.key] * STEP + MARGIN
    middle = top + BOX_HEIGHT / 2
    look = f'fill="{box.color}" stroke="#555"'
    if box.is_input:
        form = (
            f'<ellipse cx="{x:.1f}" cy="{middle:.1f}" rx="{width / 2:.1f}" '
            f'ry="{BOX_HEIGHT / 2:.1f}" {look}/>'
        )
    else:
        form = (
            f'<rect x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
            f'height="{BOX_HEIGHT:.1f}" rx="6" {look}/>'
        )
    lines = box.label.split("\n")
    first = middle - (len(lines) - 1) * LINE / 2 + 4
    words = "".join(
        f'<text x="{x:.1f}" y="{first + i * LINE:.1f}">{escape(line)}</text>'
        for i, line in enumerate(lines)
    )
    return f"<g><title>{escape(box.key)}</title>{form}{words}</g>"


def _arrow(layout: Layout, path: list, label: str) -> str:
    start = layout.layer[path[0]]
    points = []
    for i, key in enumerate(path):
        top = (start + i) * STEP + MARGIN
        x = layout.x[key] + MARGIN
        if i > 0:
            points.append((x, top))
        if i < len(path) - 1:
            points.append((x, top + BOX_HEIGHT))
    draw = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in pairwise(points):
        bend = (y0 + y1) / 2
        draw += f"C{x0:.1f},{bend:.1f} {x1:.1f},{bend:.1f} {x1:.1f},{y1:.1f}"
    line = f'<path d="{draw}" fill="none" stroke="#555" marker-end="url(#head)"/>'
    if not label:
        return line
    (x0, y0), (x1, y1) = points[:2]
    return line + (
        f'<text x="{(x0 + x1) / 2 + 6:.1f}" y="{(y0 + y1) / 2 + 4:.1f}" fill="#333" '
        f'font-size="10" text-anchor="start">{escape(label)}</text>'
    )
