"""`mx summary` and `mx view`: the layers of a model as a table, and as one HTML page."""

from __future__ import annotations

import argparse
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np

from mxnet import ndarray as nd
from mxnet.dtypes import to_torch
from mxnet.graph.unknown import is_unknown
from mxnet.visualization.costs import LayerCost, layer_costs, layer_times
from mxnet.visualization.page import render_html

from . import CommandError
from .models import Model, Shapes, load_model, parse_shapes
from .output import format_bytes, format_count, print_json, print_table


def run(args: argparse.Namespace) -> int:
    """Print the table, or its facts as JSON."""
    model = load_model(args, needs_params=False)
    shapes = model.complete_shapes(parse_shapes(args.shape, model.inputs))
    types = {name: to_torch(array.dtype) for name, array in model.parameters.items()}
    data = [*model.inputs, *model.labels]
    costs = layer_costs(model.symbol, shapes, types, data)
    times = measure(model, shapes, args.runs) if args.time else {}
    facts = _facts(model, shapes, costs, times)
    if args.json:
        print_json(facts)
    else:
        _print(facts, bool(times))
    return 0


def measure(model: Model, shapes: Shapes, runs: int) -> dict[str, float]:
    """Return the seconds of each layer, on random inputs and the model's parameters."""
    random = np.random.default_rng(0)
    parameters = model.parameters
    feed = {}
    for name, shape in shapes.items():
        array = parameters.get(name)
        if array is None:
            array = nd.array(random.standard_normal(shape, dtype=np.float32))
        feed[name] = array.to_torch().detach()
    return layer_times(model.symbol, feed, runs=runs)


def _facts(
    model: Model, shapes: Shapes, costs: list[LayerCost], times: dict[str, float]
) -> dict[str, Any]:
    total = sum(times.values())
    layers = []
    for cost in costs:
        layer = cost._asdict()
        if times:
            layer["seconds"] = times[cost.name]
            layer["share_of_time"] = times[cost.name] / total if total else 0.0
        layers.append(layer)
    totals = {
        "parameters": sum(c.parameters for c in costs),
        "states": sum(c.states for c in costs),
        "multiply_adds": sum(c.multiply_adds or 0 for c in costs),
        "multiply_adds_unknown": [c.name for c in costs if c.multiply_adds is None],
        "activation_bytes": sum(c.activation_bytes for c in costs),
        "largest_activation_bytes": max((c.activation_bytes for c in costs), default=0),
    }
    if times:
        totals["seconds"] = total
    return {
        "model": model.name,
        "files": [str(f) for f in model.files],
        "inputs": {name: shapes[name] for name in model.inputs},
        "outputs": model.symbol.list_outputs(),
        "layers": layers,
        "totals": totals,
    }


def _print(facts: dict[str, Any], timed: bool) -> None:
    headings = ["layer", "operator", "output", "parameters", "multiply-adds", "memory"]
    headings += ["time", "%"] if timed else []
    rows = []
    for layer in facts["layers"]:
        adds = layer["multiply_adds"]
        row = [
            layer["name"],
            layer["operator"],
            " ".join("x".join(map(str, s)) for s in layer["output_shapes"]),
            layer["parameters"] or "",
            "?" if adds is None else format_count(adds) if adds else "",
            format_bytes(layer["activation_bytes"]),
        ]
        if timed:
            row += [f"{layer['seconds'] * 1e3:.2f} ms", f"{layer['share_of_time'] * 100:.0f}"]
        rows.append(row)
    print_table(headings, rows, title=facts["model"], right=range(3, 8))
    totals = facts["totals"]
    inputs = ", ".join(f"{n} {'x'.join(map(str, s))}" for n, s in facts["inputs"].items())
    print(f"inputs: {inputs}")
    states = f" and {totals['states']} states" if totals["states"] else ""
    print(f"parameters: {totals['parameters']}{states}")
    unknown = totals["multiply_adds_unknown"]
    note = f", without {len(unknown)} layers that cannot be counted" if unknown else ""
    print(f"multiply-adds: {format_count(totals['multiply_adds'])}{note}")
    print(
        f"activations: {format_bytes(totals['activation_bytes'])} in all, the largest "
        f"{format_bytes(totals['largest_activation_bytes'])}"
    )
    if timed:
        print(f"time: {totals['seconds'] * 1e3:.1f} ms, layer by layer")


def view(args: argparse.Namespace) -> int:
    """Write the page, and open it if asked."""
    model = load_model(args, needs_params=False, keep_unknown=True)
    shapes = parse_shapes(args.shape, model.inputs)
    unknown = sorted({n.operator.name for n in model.symbol._graph.nodes if is_unknown(n.op)})
    all_shapes = model.complete_shapes(shapes) if shapes and not unknown else shapes
    output = Path(args.output or f"{model.name}.html")
    if not output.parent.is_dir():
        raise CommandError(f"{output}: there is no folder {output.parent}")
    title = " · ".join(dict.fromkeys([model.name, *(f.name for f in model.files[1:])]))
    render_html(model.symbol, output, all_shapes, model.parameters, title)
    print(f"wrote {output} ({format_bytes(output.stat().st_size)})")
    if unknown:
        print(f"operators that are not known here are gray: {', '.join(unknown)}")
    if args.open:
        webbrowser.open(output.resolve().as_uri())
    return 0
