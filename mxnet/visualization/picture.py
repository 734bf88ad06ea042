"""What a drawing of a network shows, whoever draws it: boxes, colors, labels, arrows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..graph.node import Node
from ..symbol import Symbol

INPUT_COLOR = "#d9e8f5"
OTHER_COLOR = "#eceff1"
# One color for each kind of work, by the module of `mxnet.ops` that holds the operator.
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
    """One node of a drawing."""

    key: str
    label: str
    color: str
    is_input: bool


class Arrow(NamedTuple):
    """Data that goes from one box to another, and what it looks like."""

    source: str
    target: str
    label: str


class Picture(NamedTuple):
    """All that is drawn of a network."""

    boxes: list[Box]
    arrows: list[Arrow]


def picture(
    symbol: Symbol,
    shape: Mapping[str, tuple[int, ...]] | None = None,
    dtype: Mapping[str, Any] | None = None,
    hide_weights: bool = True,
) -> Picture:
    """Return what to draw of a symbol; shapes and types of inputs put labels on the arrows."""
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
    return Picture(boxes, arrows)


def is_parameter(node: Node) -> bool:
    """Return whether a variable's name ends as those of parameters and states do."""
    return node.op is None and node.name.endswith(HIDDEN_ENDINGS)


def _keys(nodes: list[Node]) -> dict[Node, str]:
    """Return a key for each node: its name, numbered where two have the same."""
    seen: dict[str, int] = {}
    keys = {}
    for node in nodes:
        seen[node.name] = count = seen.get(node.name, 0) + 1
        keys[node] = node.name if count == 1 else f"{node.name} ({count})"
    return keys


def node_color(node: Node) -> str:
    """Return the color of a node: what kind of work its operator does."""
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
    """Return what distinguishes a layer from others of its operator, such as ``3x3/2, 64``."""
    typed = node.typed
    return next((show(typed) for key, show in _DETAILS.items() if typed.get(key)), "")


def _sizes(values: tuple[int, ...]) -> str:
    return "x".join(str(v) for v in values)


def _window(attrs: Mapping[str, Any]) -> str:
    kernel = _sizes(attrs.get("kernel") or ())
    stride = attrs.get("stride") or ()
    return f"{kernel}/{_sizes(stride)}" if any(s != 1 for s in stride) else kernel


# The first of these attributes that an operator has says most about it.
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
    """Return a function that says what is written on the arrow from an output of a node."""
    internals = symbol.get_internals()
    places = {(e.node, e.index): i for i, e in enumerate(internals._heads)}
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
        place = places[node, index]
        parts = []
        if shapes is not None:
            parts.append(_sizes(shapes[place][1:]))
        if types is not None:
            parts.append(f"({np.dtype(types[place]).name})")
        return " ".join(parts)

    return label
