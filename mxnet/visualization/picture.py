"""What a drawing of a network shows, whoever draws it: boxes, colours, labels, arrows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..graph.node import Node
from ..symbol import Symbol

INPUT_COLOUR = "#d9e8f5"
PLAIN_COLOUR = "#eceff1"
# One colour for each kind of work.
COLOURS = {
    "#f6b26b": ("Convolution", "Deconvolution", "FullyConnected", "dot", "batch_dot", "Embedding"),
    "#93c47d": ("Activation", "LeakyReLU", "relu", "sigmoid", "tanh", "softsign", "hard_sigmoid"),
    "#8e7cc3": ("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "L2Normalization", "LRN"),
    "#6fa8dc": ("Pooling", "UpSampling", "ROIPooling", "BilinearResize2D", "Crop"),
    "#ffd966": ("Concat", "stack", "SliceChannel", "Flatten", "Reshape", "transpose", "slice_axis"),
    "#c27ba0": ("RNN", "SequenceMask", "SequenceLast", "SequenceReverse"),
    "#76a5af": ("elemwise_add", "broadcast_add", "elemwise_mul", "broadcast_mul", "add_n"),
    "#e06666": (
        "SoftmaxOutput",
        "LinearRegressionOutput",
        "LogisticRegressionOutput",
        "MAERegressionOutput",
        "MakeLoss",
        "softmax",
        "log_softmax",
        "SVMOutput",
        "CTCLoss",
    ),
}
_COLOUR_OF = {name: colour for colour, names in COLOURS.items() for name in names}
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
    colour: str
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
    nodes = [n for n in symbol._graph.nodes if not (hide_weights and _is_parameter(n))]
    keys = _keys(nodes)
    labels = _arrow_labels(symbol, shape, dtype)
    boxes = [Box(keys[n], _label(n), _colour(n), n.op is None) for n in nodes]
    arrows = [
        Arrow(keys[e.node], keys[n], labels(e.node, e.index))
        for n in nodes
        for e in n.inputs
        if e.node in keys
    ]
    return Picture(boxes, arrows)


def _is_parameter(node: Node) -> bool:
    return node.op is None and node.name.endswith(HIDDEN_ENDINGS)


def _keys(nodes: list[Node]) -> dict[Node, str]:
    """Return a key for each node: its name, numbered where two have the same."""
    seen: dict[str, int] = {}
    keys = {}
    for node in nodes:
        seen[node.name] = count = seen.get(node.name, 0) + 1
        keys[node] = node.name if count == 1 else f"{node.name} ({count})"
    return keys


def _colour(node: Node) -> str:
    if node.op is None:
        return INPUT_COLOUR
    return _COLOUR_OF.get(node.op.name, PLAIN_COLOUR)


def _label(node: Node) -> str:
    if node.op is None:
        return node.name
    describe = _DETAILS.get(node.op.name)
    if describe is None:
        return node.op.name if node.name.lower().startswith(node.op.name.lower()) else node.name
    return f"{node.op.name}\n{describe(node.typed)}"


def _sizes(values: tuple[int, ...]) -> str:
    return "x".join(str(v) for v in values)


def _window(attrs: Mapping[str, Any]) -> str:
    kernel = _sizes(attrs["kernel"])
    stride = attrs.get("stride") or ()
    return f"{kernel}/{_sizes(stride)}" if any(s != 1 for s in stride) else kernel


_DETAILS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "Convolution": lambda a: f"{_window(a)}, {a['num_filter']}",
    "Deconvolution": lambda a: f"{_window(a)}, {a['num_filter']}",
    "FullyConnected": lambda a: str(a["num_hidden"]),
    "Activation": lambda a: a["act_type"],
    "LeakyReLU": lambda a: a["act_type"],
    "Pooling": lambda a: (
        f"{a['pool_type']}, global" if a["global_pool"] else f"{a['pool_type']}, {_window(a)}"
    ),
    "Embedding": lambda a: f"{a['input_dim']} → {a['output_dim']}",
    "Dropout": lambda a: f"p={a['p']:g}",
    "RNN": lambda a: f"{a['mode']}, {a['num_layers']} x {a['state_size']}",
    "Concat": lambda a: f"axis {a['dim']}",
    "Reshape": lambda a: str(tuple(a["shape"])) if a.get("shape") else "",
}


def _arrow_labels(
    symbol: Symbol,
    shape: Mapping[str, tuple[int, ...]] | None,
    dtype: Mapping[str, Any] | None,
) -> Callable[[Node, int], str]:
    """Return a function that tells what is written on the arrow from an output of a node."""
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
