"""`mx info`: describes files: their kind, the MXNet that wrote them, contents and problems."""

from __future__ import annotations

import argparse
import collections
import json
import math
import struct
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mxnet.error import MXNetError, ShapeError
from mxnet.formats import params_file
from mxnet.formats.recordio_file import read_index, read_list
from mxnet.graph.node import Node
from mxnet.ops import registry
from mxnet.ops.shapes import complete_inputs
from mxnet.optimizer.states_file import read_states

from . import CommandError, doctor
from .models import SYMBOL_SUFFIX, Model, params_by_epoch, read_parameters, read_symbol
from .output import format_bytes, format_count, print_facts, print_json, print_table
from .rec import Facts, record_facts

MAX_ROWS = 12  # arrays and operators, without --all
HIDDEN = frozenset({"file", "all_arrays", "nodes", "problems"})
OLDEST_VERSION = "0.8 or older"
# The first number of an array record says which releases write it so.
RECORD_VERSIONS = {
    params_file.V1: "MXNet 0.9 to 0.11",
    params_file.V2: "MXNet 0.12 or later",
    params_file.V3: "MXNet 1.5 or later, with NumPy shapes",
}
MAX_SAFETENSORS_HEADER = 100 << 20


def run(args: argparse.Namespace) -> int:
    """Print the facts about each file; return 1 if one cannot be read or has problems."""
    if not args.files:
        return doctor.report(as_json=args.json)
    all_facts: list[Facts] = []
    failed = False
    for name in (file for argument in args.files for file in _files_of(argument)):
        try:
            all_facts.append(read_facts(Path(name)))
        except (CommandError, OSError) as error:
            failed = True
            all_facts.append({"file": name, "error": str(error)})
    if args.json:
        print_json(all_facts)
    else:
        for facts in all_facts:
            _print(facts, args.all)
    return 1 if failed or any(facts.get("problems") for facts in all_facts) else 0


def _files_of(name: str) -> list[str]:
    """Return a file, or the symbol and the last parameters of a prefix, as other commands do."""
    path = Path(name)
    symbol = path.with_name(path.name + SYMBOL_SUFFIX)
    if path.is_file() or not symbol.is_file():
        return [name]
    params = params_by_epoch(path.parent, path.name)
    return [str(symbol), *([str(params[max(params)])] if params else [])]


def _print(facts: Facts, everything: bool) -> None:
    if "error" in facts:
        sys.stderr.write(f"mx info: {facts['error']}\n")
        return
    shown = {k.replace("_", " "): _text(k, v) for k, v in facts.items() if k not in HIDDEN}
    print_facts(shown, title=facts["file"])
    arrays = facts.get("all_arrays", [])
    if arrays:
        rows = [(a["name"], _shape(a["shape"]), a["dtype"], a["storage"]) for a in arrays]
        _print_rows(("array", "shape", "dtype", "storage"), rows, everything)
    nodes = facts.get("nodes", [])
    if nodes and everything:
        rows = [(n["name"], n["operator"], _pairs(n["attributes"])) for n in nodes]
        _print_rows(("layer", "operator", "attributes"), rows, everything)
    for problem in facts["problems"]:
        print(f"  problem: {problem}")


def _print_rows(headings: tuple[str, ...], rows: list[tuple], everything: bool) -> None:
    shown = rows if everything else rows[:MAX_ROWS]
    print_table(headings, shown)
    if len(shown) < len(rows):
        print(f"... {len(rows) - len(shown)} more (--all)")


def _shape(shape: list[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{k}={v}" for k, v in values.items())


def _text(key: str, value: Any) -> str | None:
    if value is None:
        return None
    if key == "bytes":
        return format_bytes(value)
    if key == "parameters":
        return f"{value} ({format_count(value)})"
    if isinstance(value, dict):
        if key in ("operators", "contents", "dtypes"):
            return ", ".join(f"{n} {name}" for name, n in list(value.items())[:MAX_ROWS])
        return _pairs(value)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def read_facts(path: Path) -> Facts:
    """Return the facts about a file, found by its name or its first bytes."""
    if not path.exists():
        raise CommandError(f"{path}: there is no such file")
    if not path.is_file():
        raise CommandError(f"{path}: it is not a file")
    read = READERS.get(path.suffix) or _by_content(path)
    if read is None:
        kinds = ", ".join(READERS)
        raise CommandError(f"{path}: neither its name nor its first bytes show one of {kinds}")
    try:
        facts = read(path)
    except MXNetError as error:
        text = str(error)
        raise CommandError(text if str(path) in text else f"{path}: {text}") from error
    return {"file": str(path), "bytes": path.stat().st_size, **facts}


def _by_content(path: Path) -> Callable[[Path], Facts] | None:
    with path.open("rb") as file:
        start = file.read(8)
    if start.startswith(struct.pack("<Q", params_file.LIST_MAGIC)):
        return params_facts
    if start.startswith(struct.pack("<I", 0xCED7230A)):
        return record_facts
    return symbol_facts if start.lstrip()[:1] == b"{" else None


# -- models ----------------------------------------------------------------------------------------


def symbol_facts(path: Path) -> Facts:
    """Return the facts of a ``-symbol.json``, and how it fits the parameters beside it."""
    text = path.read_text(encoding="utf-8", errors="replace")
    version, unknown = _raw_graph(text, path)
    symbol = read_symbol(path, keep_unknown=True)
    files = params_by_epoch(path.parent, path.name.removesuffix(SYMBOL_SUFFIX))
    beside = max(files.values(), default=None)
    if beside is None:
        model = Model(path.stem, symbol, has_params=False)
        problems = []
    else:
        model = Model(path.stem, symbol, *read_parameters(beside, symbol))
        problems = _mismatches(model)
    problems += [f"operator {name} is not registered here" for name in unknown]
    nodes = [node for node in symbol._graph.nodes if node.op is not None]
    operators = collections.Counter(node.operator.name for node in nodes)
    return {
        "kind": "symbol",
        "written_by": version,
        "inputs": model.inputs,
        "labels": model.labels,
        "outputs": symbol.list_outputs(),
        "layers": len(nodes),
        "operators": dict(operators.most_common()),
        "parameters_file": str(beside) if beside else None,
        "parameters": sum(math.prod(a.shape) for a in model.parameters.values()) or None,
        "nodes": [
            {"name": n.name, "operator": n.operator.name, "attributes": dict(n.attrs)}
            for n in nodes
        ],
        "problems": problems,
    }


def _raw_graph(text: str, path: Path) -> tuple[str, list[str]]:
    """Return which MXNet wrote a symbol file, and its operators that are not registered."""
    try:
        raw = json.loads(text, strict=False)
        version = raw.get("attrs", {}).get("mxnet_version")
        used = {row["op"] for row in raw["nodes"]}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CommandError(
            f"{path}: it is not the JSON of a symbol: {type(error).__name__}: {error}"
        ) from None
    number = version[1] if isinstance(version, list) and len(version) == 2 else version
    unknown = sorted(str(n) for n in used if n != "null" and registry.find(str(n)) is None)
    if not isinstance(number, int):
        return f"MXNet {OLDEST_VERSION}", unknown
    return f"MXNet {number // 10000}.{number // 100 % 100}.{number % 100}", unknown


def _mismatches(model: Model) -> list[str]:
    """Return parameters whose shapes the graph contradicts, and states that are missing."""
    missing = set(model.symbol.list_auxiliary_states()) - set(model.auxiliary)
    problems = [f"the parameter file lacks the state {name}" for name in sorted(missing)]
    shapes = {n: a.shape for n, a in model.parameters.items()}
    try:
        model.symbol.infer_shape_partial(**shapes)
        for node in model.symbol._graph.nodes:
            if node.op is not None:
                _check_parameters(node, shapes)
    except MXNetError as error:
        problems.append(f"parameters do not fit the graph: {error}")
    return problems


def _check_parameters(node: Node, shapes: Mapping[str, tuple[int, ...]]) -> None:
    input_shapes = [shapes.get(e.node.name) if e.node.is_variable else None for e in node.inputs]
    try:
        complete_inputs(node.operator, input_shapes, node.typed)
    except ShapeError as error:
        raise ShapeError(f"Error in operator {node.name}: {error}") from None
    except (RuntimeError, TypeError, ValueError, IndexError):
        return  # the rule needs the shape of the data


def params_facts(path: Path) -> Facts:
    """Return the facts of a ``.params`` file: its arrays and their versions."""
    with path.open("rb") as file:
        file.seek(24)
        (magic,) = struct.unpack("<I", file.read(4).ljust(4, b"\0"))
    read = params_file.read(path)
    named = read if isinstance(read, dict) else {str(i): a for i, a in enumerate(read)}
    arrays = [_array_facts(name, array) for name, array in named.items()]
    broken = [a["name"] for a in arrays if a.pop("not_finite")]
    dtypes = collections.Counter(a["dtype"] for a in arrays)
    prefixes = {name.partition(":")[0] for name in named if ":" in name}
    if isinstance(read, list):
        kind = "list of arrays"
    else:
        kind = "checkpoint" if prefixes & {"arg", "aux"} else "named arrays"
    return {
        "kind": kind,
        "written_by": RECORD_VERSIONS.get(magic, f"MXNet {OLDEST_VERSION}") if arrays else None,
        "arrays": len(arrays),
        "parameters": sum(math.prod(a["shape"]) for a in arrays),
        "dtypes": dict(dtypes.most_common()),
        "all_arrays": arrays,
        "problems": [f"{name} holds NaN or infinite values" for name in broken],
    }


def _array_facts(name: str, array: params_file.Array) -> Facts:
    values = array if not isinstance(array, tuple) else array.values
    storage = "dense" if values is array else type(array).__name__
    finite = not values.is_floating_point() or bool(values.isfinite().all())
    return {
        "name": name,
        "shape": list(array.shape),
        "dtype": str(values.dtype).removeprefix("torch."),
        "storage": storage,
        "not_finite": not finite,
    }


def states_facts(path: Path) -> Facts:
    """Return the facts of optimizer states; only known kinds of objects are read."""
    read = read_states(path.read_bytes())
    states, optimizer = read if isinstance(read, tuple) else (read, None)
    return {
        "kind": "optimizer states",
        "optimizer": type(optimizer).__name__ if optimizer is not None else None,
        "states": len(states),
        "keys": [str(key) for key in list(states)[:20]],
        "problems": [],
    }


def safetensors_facts(path: Path) -> Facts:
    """Return the facts of a ``.safetensors`` file from its header."""
    with path.open("rb") as file:
        raw = file.read(8)
        size = struct.unpack("<Q", raw)[0] if len(raw) == 8 else -1
        if not 0 < size <= min(MAX_SAFETENSORS_HEADER, path.stat().st_size - 8):
            raise CommandError(f"{path}: it is not a safetensors file (no header of its size)")
        try:
            header = json.loads(file.read(size))
            metadata = header.pop("__metadata__", {})
            arrays = [
                {"name": n, "shape": row["shape"], "dtype": row["dtype"], "storage": "dense"}
                for n, row in header.items()
            ]
            ends = [row["data_offsets"][1] for row in header.values()]
            count = sum(math.prod(a["shape"]) for a in arrays)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            raise CommandError(f"{path}: the header of this safetensors file is damaged") from None
    missing = max(ends, default=0) - (path.stat().st_size - 8 - size)
    return {
        "kind": "safetensors",
        "metadata": metadata,
        "arrays": len(arrays),
        "parameters": count,
        "dtypes": dict(collections.Counter(a["dtype"] for a in arrays)),
        "all_arrays": arrays,
        "problems": [f"{missing} bytes are missing at its end"] if missing > 0 else [],
    }


def onnx_facts(path: Path) -> Facts:
    """Return the facts of an ``.onnx`` file."""
    from mxnet.interop.onnx.importer.reading import check_model, parse_model

    name, data, model = parse_model(path)
    if not model.graph.node and not model.graph.output:
        raise CommandError(f"{path}: it is not an ONNX model: its graph is empty")
    weights = {w.name for w in model.graph.initializer}
    problems = []
    try:
        check_model(name, data, model)
    except MXNetError as error:
        problems.append(str(error).removeprefix(f"{name}: "))
    return {
        "kind": "ONNX model",
        "written_by": f"{model.producer_name} {model.producer_version}".strip() or None,
        "opsets": {o.domain or "ai.onnx": o.version for o in model.opset_import},
        "inputs": [_onnx_value(v) for v in model.graph.input if v.name not in weights],
        "outputs": [_onnx_value(v) for v in model.graph.output],
        "layers": len(model.graph.node),
        "operators": dict(collections.Counter(n.op_type for n in model.graph.node).most_common()),
        "parameters": sum(math.prod(w.dims) for w in model.graph.initializer),
        "problems": problems,
    }


def _onnx_value(value: Any) -> str:
    dims = value.type.tensor_type.shape.dim
    return f"{value.name}({', '.join(d.dim_param or str(d.dim_value or '?') for d in dims)})"


# -- records --------------------------------------------------------------------------------------


def index_facts(path: Path) -> Facts:
    """Return the facts of the index of a record file, checked against its size."""
    lines = read_index(path, key_type=str, on_error="skip")
    problems = [f"{lines.skipped} lines are not key and offset"] if lines.skipped else []
    rec = path.with_suffix(".rec")
    if not lines and lines.skipped:
        raise CommandError(f"{path}: none of its lines is a key and an offset")
    if rec.exists():
        beyond = sum(at >= rec.stat().st_size for _, at in lines)
        problems += [f"{beyond} keys point behind the end of {rec}"] if beyond else []
    return {
        "kind": "index of records",
        "keys": len(lines),
        "records_file": str(rec) if rec.exists() else None,
        "problems": problems,
    }


def list_facts(path: Path) -> Facts:
    """Return the facts of a list of images."""
    lines = read_list(path, on_error="skip")
    if not lines and lines.skipped:
        raise CommandError(f"{path}: none of its lines is index, labels and path")
    labels = collections.Counter(line.labels[0] for line in lines if len(line.labels) == 1)
    problem = f"{lines.skipped} lines are not index, labels and path"
    return {
        "kind": "list of images",
        "images": len(lines),
        "classes": len(labels) or None,
        "problems": [problem] if lines.skipped else [],
    }


READERS: dict[str, Callable[[Path], Facts]] = {
    ".json": symbol_facts,
    ".params": params_facts,
    ".states": states_facts,
    ".rec": record_facts,
    ".idx": index_facts,
    ".lst": list_facts,
    ".onnx": onnx_facts,
    ".safetensors": safetensors_facts,
}
