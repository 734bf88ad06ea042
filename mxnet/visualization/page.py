"""`render_html`: a network as a self-contained interactive HTML page."""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ..formats.atomic import replacing
from ..graph.node import Node
from ..graph.passes.infer import infer_shapes
from ..graph.unknown import is_unknown
from ..ndarray import NDArray
from ..ops.shapes import is_known
from ..symbol import Symbol
from .costs import LayerCost, layer_costs
from .drawing import is_parameter, node_color, node_detail

Shape = tuple[int, ...]
BINS = 48
FEWEST_IN_BLOCK = 2
UNKNOWN_COLOR, OUTPUT_COLOR = "#c4c7cc", "#dcefdc"


def render_html(
    symbol: Symbol,
    path: str | Path,
    shape: Mapping[str, Shape] | None = None,
    params: Mapping[str, NDArray] | None = None,
    title: str | None = None,
) -> str:
    """Write the network as an HTML page and return its path.

    The page supports zooming, search and folding of blocks, and shows attributes, shapes, costs and
    histograms of weights. It loads no external resources.

    Parameters
    ----------
    symbol : Symbol
        The network.
    path
        Path of the file.
    shape : dict of str to tuple, optional
        Shapes of the inputs; with them the page shows those of all results, and costs.
    params : dict of str to NDArray, optional
        Parameters and auxiliary states, for their histograms.
    title : str, optional
        Title of the page; by default the file name.

    >>> net = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> print(mx.viz.render_html(net, "net.html", shape={"data": (1, 3)}))
    net.html
    """
    text = page_text(symbol, shape, params, title or Path(path).stem)
    with replacing(Path(path)) as file:
        file.write(text.encode("utf-8"))
    return str(path)


def page_text(
    symbol: Symbol,
    shape: Mapping[str, Shape] | None = None,
    params: Mapping[str, NDArray] | None = None,
    title: str = "model",
) -> str:
    """Return the text of the page."""
    if not isinstance(symbol, Symbol):
        raise TypeError("symbol must be a Symbol")
    model = page_data(symbol, shape or {}, params or {}, title)
    # "<" cannot begin a tag inside of JSON that has none.
    data = json.dumps(model, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "{title}": html.escape(title),
        "{style}": _asset("page.css"),
        "{model}": data,
        "{layout}": _asset("layout.js"),
        "{script}": _asset("page.js"),
    }
    # One pass, so that names in the model that look like slots are not replaced.
    return re.sub(r"\{[a-z]+\}", lambda slot: parts[slot[0]], _asset("page.html"))


def _asset(name: str) -> str:
    path = resources.files(__name__.rpartition(".")[0]) / "assets" / name
    return path.read_text(encoding="utf-8").rstrip("\n")


def page_data(
    symbol: Symbol, shape: Mapping[str, Shape], params: Mapping[str, NDArray], title: str
) -> dict[str, Any]:
    """Return the data of the page, as plain containers."""
    graph = symbol._graph
    input_shapes = {**{name: array.shape for name, array in params.items()}, **shape}
    shapes = infer_shapes(graph, input_shapes)
    costs = {c.name: c for c in layer_costs(symbol, input_shapes)} if shapes.complete else {}
    hidden = {n for n in graph.variables if n.name in params or is_parameter(n)}
    shown = [n for n in graph.nodes if n not in hidden]
    position = {node: i for i, node in enumerate(shown)}
    blocks, block_of = find_blocks([n.name if n.op is not None else "" for n in shown])
    rows = [
        {
            "name": node.name,
            "short": _short_name(node.name, blocks, block_of[i]),
            "operator": "" if node.op is None else node.op.name,
            "detail": _detail(node),
            "kind": "input" if node.op is None else "layer",
            "color": UNKNOWN_COLOR if is_unknown(node.op) else node_color(node),
            "block": block_of[i],
            "attributes": node.all_attributes(),
            "inputs": [[position[e.node], e.index] for e in node.inputs if e.node in position],
            "outputs": [_shape_text(s) for s in shapes.values[node]],
            "costs": _cost_facts(costs.get(node.name)),
            "weights": [
                _weight(e.node, params.get(e.node.name), shapes.values[e.node][0])
                for e in node.inputs
                if e.node in hidden
            ],
        }
        for i, node in enumerate(shown)
    ]
    rows += _output_rows(symbol, position, rows)
    return {
        "title": title,
        "facts": _facts(shown, costs.values(), params),
        "nodes": rows,
        "blocks": blocks,
    }


def _detail(node: Node) -> str:
    if node.op is None:
        return ""
    return "not known here" if is_unknown(node.op) else node_detail(node)


def _output_rows(
    symbol: Symbol, position: Mapping[Node, int], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a row for each output of the network."""
    results = []
    for name, (node, index, _) in zip(symbol.list_outputs(), symbol._heads, strict=True):
        if node not in position:
            continue
        shapes = rows[position[node]]["outputs"]
        results.append(
            {
                "name": name,
                "short": name,
                "operator": "",
                "detail": "",
                "kind": "output",
                "color": OUTPUT_COLOR,
                "block": None,
                "attributes": {},
                "inputs": [[position[node], index]],
                "outputs": shapes[index : index + 1],
                "costs": None,
                "weights": [],
            }
        )
    return results


def _short_name(name: str, blocks: list[dict[str, Any]], block: int | None) -> str:
    return name if block is None else name.removeprefix(blocks[block]["path"]).strip("_") or name


def _shape_text(shape: Shape | None) -> str:
    if shape is None:
        return ""
    return "×".join("?" if n < 0 or not is_known((n,)) else str(n) for n in shape) or "scalar"


def _facts(shown: Sequence[Node], costs: Any, params: Mapping[str, NDArray]) -> dict[str, str]:
    layers = [n for n in shown if n.op is not None]
    facts = {"layers": str(len(layers))}
    total = sum(c.parameters + c.states for c in costs) or sum(a.size for a in params.values())
    if total:
        facts["parameters"] = f"{total:,}"
    if costs:
        facts["multiply-adds"] = f"{sum(c.multiply_adds or 0 for c in costs):,}"
        facts["bytes of activations"] = f"{sum(c.activation_bytes for c in costs):,}"
    return facts


def _cost_facts(cost: LayerCost | None) -> dict[str, str] | None:
    if cost is None:
        return None
    adds = "not known" if cost.multiply_adds is None else f"{cost.multiply_adds:,}"
    return {
        "parameters": f"{cost.parameters:,}",
        "multiply-adds": adds,
        "output bytes": f"{cost.activation_bytes:,}",
    }


def _weight(node: Node, array: NDArray | None, shape: Shape | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"name": node.name, "shape": _shape_text(shape)}
    if array is None:
        return facts
    values = array.asnumpy()
    facts |= {"shape": _shape_text(array.shape), "dtype": str(values.dtype)}
    values = values.astype(np.float64).ravel()
    finite = values[np.isfinite(values)]
    if not finite.size:
        return facts | {"statistics": "no finite values"}
    counts, _ = np.histogram(finite, bins=BINS)
    broken = f", {values.size - finite.size} not finite" if finite.size < values.size else ""
    return facts | {
        "histogram": counts.tolist(),
        "statistics": f"{finite.min():.4g} to {finite.max():.4g}, mean {finite.mean():.4g}, "
        f"std {finite.std():.4g}{broken}",
    }


def find_blocks(names: Sequence[str]) -> tuple[list[dict[str, Any]], list[int | None]]:
    """Return the blocks of names like ``stage1_conv0_fwd``, and the block of each name.

    A block is a prefix that ends before an underscore and that several names share, unless all
    do or the block inside it has the same members.

    >>> blocks, block_of = find_blocks(["a_x", "a_y", "b"])
    >>> [b["name"] for b in blocks], block_of
    (['a'], [0, 0, None])
    """
    prefixes = [_prefixes(name) for name in names]
    members = Counter(prefix for result in prefixes for prefix in result)
    real = sum(1 for name in names if name)
    common = max((p for p, n in members.items() if n == real), key=len, default="")
    indices: dict[str, int] = {}
    blocks: list[dict[str, Any]] = []
    block_of: list[int | None] = []
    for i, result in enumerate(prefixes):
        inner: int | None = None
        for prefix, longer in pairwise([*result, ""]):
            count = members[prefix]
            if count < FEWEST_IN_BLOCK or count == real or members[longer] == count:
                continue
            if prefix not in indices:
                indices[prefix] = len(blocks)
                parent = blocks[inner]["path"] if inner is not None else common
                name = prefix.removeprefix(parent).strip("_") or prefix
                blocks.append({"name": name, "path": prefix, "parent": inner, "nodes": []})
            inner = indices[prefix]
            blocks[inner]["nodes"].append(i)
        block_of.append(inner)
    return blocks, block_of


def _prefixes(name: str) -> list[str]:
    """Return the prefixes of a name that end before an underscore, shortest first."""
    results = []
    for i, letter in enumerate(name):
        if letter == "_" and name[:i].strip("_") and not (results and results[-1] == name[: i - 1]):
            results.append(name[:i])
    return results
