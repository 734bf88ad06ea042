"""Drawings of networks in pure Python: boxes, arrows, layout, SVG.

The layout is layered: inputs on top, every box below its inputs, few crossings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..graph.node import Node
from ..symbol import Symbol

INPUT_COLOR = "#d9e8f5"
OTHER_COLOR = "#eceff1"
# Colors by the module of the operator in `mxnet.ops`.
COLORS = {
    "#f6b26b": ("convolution", "deconvolution", "dense", "products", "linalg_products"),
    "#93c47d": ("activation", "families", "elementwise", "arithmetic"),
    "#8e7cc3": ("batch_norm", "normalization"),
    "#6fa8dc": ("pooling", "roi", "spatial_transform", "image"),
    "#ffd966": ("joining", "shape_changing", "slicing", "indexing", "broadcasting"),
    "#c27ba0": ("recurrent", "sequence", "attention"),
    "#e06666": ("loss_outputs", "softmax", "ctc"),
}
_COLOR_OF = {module: color for color, modules in COLORS.items() for module in modules}
# Variables with these endings are parameters and states rather than data.
HIDDEN_ENDINGS = (
    "_weight",
    "_bias",
    "_gamma",
    "_beta",
    "_moving_mean",
    "_moving_var",
    "_moving_avg",
    "_running_mean",
    "_running_var",
    "_parameters",
    "_init_c",
    "_init_h",
)


class Box(NamedTuple):
    """A node of a drawing."""

    key: str
    label: str
    color: str
    is_input: bool


class Arrow(NamedTuple):
    """An arrow for data between two boxes, and its style."""

    source: str
    target: str
    label: str


class Diagram(NamedTuple):
    """The boxes and arrows of a drawing."""

    boxes: list[Box]
    arrows: list[Arrow]


def diagram(
    symbol: Symbol,
    shape: Mapping[str, tuple[int, ...]] | None = None,
    dtype: Mapping[str, Any] | None = None,
    hide_weights: bool = True,
) -> Diagram:
    """Return the diagram of a symbol; given shapes and types of inputs, arrows have labels."""
    if not isinstance(symbol, Symbol):
        raise TypeError("symbol must be a Symbol")
    nodes = [n for n in symbol._graph.nodes if not (hide_weights and is_parameter(n))]
    keys = _keys(nodes)
    labels = _arrow_labels(symbol, shape, dtype)
    boxes = [Box(keys[n], _label(n), node_color(n), n.op is None) for n in nodes]
    arrows = [
        Arrow(keys[e.node], keys[n], labels(e.node, e.index))
        for n in nodes
        for e in n.inputs
        if e.node in keys
    ]
    return Diagram(boxes, arrows)


def is_parameter(node: Node) -> bool:
    """Return whether a variable's name has the suffix of a parameter or state."""
    return node.op is None and node.name.endswith(HIDDEN_ENDINGS)


def _keys(nodes: list[Node]) -> dict[Node, str]:
    """Return a key for each node: its name, with a number if it is not unique."""
    seen: dict[str, int] = {}
    keys = {}
    for node in nodes:
        seen[node.name] = count = seen.get(node.name, 0) + 1
        keys[node] = node.name if count == 1 else f"{node.name} ({count})"
    return keys


def node_color(node: Node) -> str:
    """Return the color of a node by the type of its operator."""
    if node.op is None:
        return INPUT_COLOR
    return _COLOR_OF.get(node.op.function.__module__.rpartition(".")[2], OTHER_COLOR)


def _label(node: Node) -> str:
    if node.op is None:
        return node.name
    detail = node_detail(node)
    if not detail:
        return node.op.name if node.name.lower().startswith(node.op.name.lower()) else node.name
    return f"{node.op.name}\n{detail}"


def node_detail(node: Node) -> str:
    """Return the main attributes of a layer, such as ``3x3/2, 64``."""
    typed = node.typed
    return next((show(typed) for key, show in _DETAILS.items() if typed.get(key)), "")


def _sizes(values: tuple[int, ...]) -> str:
    return "x".join(str(v) for v in values)


def _window(attrs: Mapping[str, Any]) -> str:
    kernel = _sizes(attrs.get("kernel") or ())
    stride = attrs.get("stride") or ()
    return f"{kernel}/{_sizes(stride)}" if any(s != 1 for s in stride) else kernel


# The first of these attributes of an operator is shown.
_DETAILS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "num_filter": lambda a: f"{_window(a)}, {a['num_filter']}",
    "num_hidden": lambda a: str(a["num_hidden"]),
    "pool_type": lambda a: (
        f"{a['pool_type']}, global" if a.get("global_pool") else f"{a['pool_type']}, {_window(a)}"
    ),
    "act_type": lambda a: a["act_type"],
    "output_dim": lambda a: f"{a.get('input_dim')} → {a['output_dim']}",
    "state_size": lambda a: f"{a.get('mode')}, {a.get('num_layers')} x {a['state_size']}",
    "p": lambda a: f"p={a['p']}",
    "dim": lambda a: f"axis {a['dim']}",
    "shape": lambda a: str(tuple(a["shape"])),
}


def _arrow_labels(
    symbol: Symbol,
    shape: Mapping[str, tuple[int, ...]] | None,
    dtype: Mapping[str, Any] | None,
) -> Callable[[Node, int], str]:
    internals = symbol.get_internals()
    positions = {(e.node, e.index): i for i, e in enumerate(internals._heads)}
    shapes = types = None
    if shape is not None:
        _, shapes, _ = internals.infer_shape(**shape)
        if shapes is None:
            raise ValueError("Input shape is incomplete")
    if dtype is not None:
        _, types, _ = internals.infer_type(**dtype)
        if types is None:
            raise ValueError("Input type is incomplete")

    def label(node: Node, index: int) -> str:
        position = positions[node, index]
        parts = []
        if shapes is not None:
            parts.append(_sizes(shapes[position][1:]))
        if types is not None:
            parts.append(f"({np.dtype(types[position]).name})")
        return " ".join(parts)

    return label


GAP = 24.0  # between neighbors
PASSAGE = 16.0  # width of an arrow that passes a layer
SWEEPS = 6

Key = str | tuple[int, int]  # a box, or the passage of arrow number i through layer number j


class Layout(NamedTuple):
    """The layout: x positions, the layer of every box, the path of every arrow."""

    x: dict[Key, float]
    layer: dict[str, int]
    paths: list[list[Key]]
    width: float


def layered(shown: Diagram, widths: dict[str, float]) -> Layout:
    """Return a layout for boxes of the given widths."""
    layer = _layers(shown)
    depth = max(layer.values(), default=0) + 1
    rows: list[list[Key]] = [[] for _ in range(depth)]
    for box in shown.boxes:
        rows[layer[box.key]].append(box.key)
    paths = [_path(i, a, layer, rows) for i, a in enumerate(shown.arrows)]
    above, below = _neighbors(paths)
    _order(rows, above, below)
    width_of = {k: widths[k] if isinstance(k, str) else PASSAGE for row in rows for k in row}
    x = _place(rows, above, below, width_of)
    left = min((x[k] - width_of[k] / 2 for k in x), default=0.0)
    right = max((x[k] + width_of[k] / 2 for k in x), default=0.0)
    return Layout({k: v - left for k, v in x.items()}, layer, paths, right - left)


def _layers(shown: Diagram) -> dict[str, int]:
    """Return each box's distance from the inputs; inputs are drawn above their consumer."""
    sources: dict[str, list[str]] = {}
    users: dict[str, list[str]] = {}
    for arrow in shown.arrows:
        sources.setdefault(arrow.target, []).append(arrow.source)
        users.setdefault(arrow.source, []).append(arrow.target)
    layer: dict[str, int] = {}
    for box in shown.boxes:  # boxes are in topological order
        layer[box.key] = max((layer[s] + 1 for s in sources.get(box.key, ())), default=0)
    for box in shown.boxes:
        if box.is_input and box.key in users:
            layer[box.key] = min(layer[u] for u in users[box.key]) - 1
    return layer


def _path(number: int, arrow: Arrow, layer: dict[str, int], rows: list[list[Key]]) -> list[Key]:
    path: list[Key] = [arrow.source]
    for j in range(layer[arrow.source] + 1, layer[arrow.target]):
        rows[j].append((number, j))
        path.append((number, j))
    return [*path, arrow.target]


def _neighbors(paths: Sequence[Sequence[Key]]) -> tuple[dict[Key, list], dict[Key, list]]:
    above: dict[Key, list[Key]] = {}
    below: dict[Key, list[Key]] = {}
    for path in paths:
        for upper, lower in pairwise(path):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    return above, below


def _order(rows: list[list[Key]], above: dict, below: dict) -> None:
    """Sort each row by the mean place of its neighbors, down and up again."""
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        todo = pairwise(rows) if down else pairwise(rows[::-1])
        near = above if down else below
        for fixed, row in todo:
            position = {k: i for i, k in enumerate(fixed)}
            own = {k: i for i, k in enumerate(row)}
            row.sort(key=lambda k, p=position, o=own, n=near: _mean(n.get(k, ()), p, o[k]))


def _mean(neighbors: Sequence[Key], place: Mapping[Key, float], default: float) -> float:
    results = [place[n] for n in neighbors if n in place]
    return sum(results) / len(results) if results else default


def _place(
    rows: list[list[Key]], above: dict, below: dict, width: dict[Key, float]
) -> dict[Key, float]:
    """Return the x of every box: near its neighbors, in the order of the row, without overlap."""
    x: dict[Key, float] = {}
    for row in rows:
        _spread(row, [0.0] * len(row), width, x)
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            _spread(row, [_mean(near.get(k, ()), x, x[k]) for k in row], width, x)
    return x


def _spread(row: list[Key], wanted: list[float], width: dict[Key, float], x: dict) -> None:
    """Move the members of a row as close to their preferred positions as possible."""
    steps = [(width[a] + width[b]) / 2 + GAP for a, b in pairwise(row)]
    from_left = _push(wanted, steps)
    from_right = [-v for v in _push([-w for w in wanted[::-1]], steps[::-1])][::-1]
    for key, a, b in zip(row, from_left, from_right, strict=True):
        x[key] = (a + b) / 2


def _push(wanted: list[float], steps: list[float]) -> list[float]:
    placed: list[float] = []
    for i, want in enumerate(wanted):
        placed.append(want if i == 0 else max(want, placed[-1] + steps[i - 1]))
    return placed


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
        Path of the file.
    shape, dtype : dict, optional
        Shapes and types of the inputs; then arrows show those of the data.
    hide_weights
        Whether to hide weights, biases and other parameters.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> print(mx.viz.render_svg(net, "net.svg"))
    net.svg
    """
    text = svg_text(diagram(symbol, shape, dtype, hide_weights))
    Path(path).write_text(text, encoding="utf-8")
    return str(path)


def svg_text(shown: Diagram) -> str:
    """Return the SVG text of a diagram."""
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
        f'<text x="{x:.1f}" y="{first + i * LINE:.1f}">{escape(line, quote=False)}</text>'
        for i, line in enumerate(lines)
    )
    return f"<g><title>{escape(box.key, quote=False)}</title>{form}{words}</g>"


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
        f'font-size="10" text-anchor="start">{escape(label, quote=False)}</text>'
    )
