"""Symbol files: graphs in MXNet's JSON format, written like 1.9.1, read in all versions.

Files are not trusted: any error raises `FormatError` with its location.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Sequence
from typing import Any

from ..base import is_np_shape
from ..error import FormatError, MXNetError, did_you_mean
from ..ops import registry
from ..ops.attributes import MAX_ARRAYS
from ..ops.declare import Op
from ..ops.shapes import UNKNOWN
from ..ops.tensor.reduce import argmax, argmin
from .graph import Graph, topological
from .node import HIDDEN_KEYS, Entry, Node, input_init, is_extra, signature_of, stored_key
from .passes.infer import variable_shape, variable_type
from .unknown import stand_in

VERSION = 10901
MAX_TEXT = 1 << 28
MAX_NODES = 500_000
MAX_ATTRIBUTE = 1 << 24
MAX_DEPTH = 64
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'["\\\n\r\t]')
_WIDE = 10  # longer lists are written with one item per line
_NODE_FIELDS = frozenset(
    {"op", "name", "attrs", "attr", "param", "inputs", "control_deps", "subgraphs"}
    | {"backward_source_id"}
)
_GRAPH_FIELDS = frozenset({"nodes", "arg_nodes", "node_row_ptr", "heads", "attrs"})


# -- writing ----------------------------------------------------------------------------------


def dumps(heads: Sequence[Entry], *, np_shape: bool = False) -> str:
    """Return a graph as JSON, identical to MXNet 1.9.1's."""
    attrs = {"is_np_shape": 1} if np_shape else {}
    attrs["mxnet_version"] = VERSION
    return _graph_text(heads, "", {k: f'["int", {v}]' for k, v in attrs.items()})


def _graph_text(heads: Sequence[Entry], indent: str, attrs: dict[str, str] | None) -> str:
    nodes = topological(heads)
    position = {node: i for i, node in enumerate(nodes)}
    row_ptr, total = [0], 0
    variables, texts = [], []
    inner = indent + "      "
    cached_texts: dict[tuple, str] = {}  # many nodes have the same attributes
    for i, node in enumerate(nodes):
        if node.op is None:
            variables.append(i)
            total += 1
        else:
            total += node.signature.total
        row_ptr.append(total)
        texts.append(_node_text(node, position, inner, cached_texts))
    body = f", \n{indent}    ".join(texts)
    fields = [
        f'"nodes": [\n{indent}    {body}\n{indent}  ]' if texts else '"nodes": []',
        '"arg_nodes": ' + _list_text([str(i) for i in variables], indent + "  "),
        '"node_row_ptr": ' + _list_text([str(i) for i in row_ptr], indent + "  "),
        '"heads": ' + _list_text(_entry_texts(heads, position), indent + "  "),
    ]
    if attrs is not None:
        fields.append('"attrs": ' + _object_text(attrs, indent + "  "))
    space = f", \n{indent}  "
    return f"{{\n{indent}  {space.join(fields)}\n{indent}}}"


def _node_text(
    node: Node, position: dict[Node, int], indent: str, cached_texts: dict[tuple, str]
) -> str:
    attributes = ""
    if node.attrs or node.extra:
        key = (*node.attrs.items(), *node.extra.items())
        attributes = cached_texts.get(key)
        if attributes is None:
            quoted = {k: _quote(v) for k, v in sorted(dict(key).items())}
            attributes = f'"attrs": {_object_text(quoted, indent)}, \n{indent}'
            cached_texts[key] = attributes
    inputs = _list_text(_entry_texts(node.inputs, position), indent) if node.inputs else "[]"
    text = (
        f'{{\n{indent}"op": "{node.op.name if node.op else "null"}", \n{indent}"name": '
        f'{_quote(node.name)}, \n{indent}{attributes}"inputs": {inputs}'
    )
    if node.subgraphs:
        deeper = indent + "  "
        graphs = ", \n".join(deeper + _graph_text(g.heads, deeper, None) for g in node.subgraphs)
        text += f', \n{indent}"subgraphs": [\n{graphs}\n{indent}]'
    return f"{text}\n{indent[:-2]}}}"


def _entry_texts(entries: Sequence[Entry], position: dict[Node, int]) -> list[str]:
    return [f"[{position[node]}, {index}, {version}]" for node, index, version in entries]


def _list_text(items: list[str], indent: str) -> str:
    if len(items) <= _WIDE:
        return f"[{', '.join(items)}]"
    space = f", \n{indent}  "
    return f"[\n{indent}  {space.join(items)}\n{indent}]"


def _object_text(items: dict[str, str], indent: str) -> str:
    pairs = [f"{_quote(k)}: {v}" for k, v in items.items()]
    if len(pairs) == 1:
        return f"{{{pairs[0]}}}"
    space = f", \n{indent}  "
    return f"{{\n{indent}  {space.join(pairs)}\n{indent}}}"


def _quote(text: str) -> str:
    # MXNet's parser supports these five escapes and no \u: other characters are not escaped.
    if _SPECIAL.search(text):
        text = _SPECIAL.sub(lambda match: _ESCAPES[match.group()], text)
    return f'"{text}"'


# -- reading ----------------------------------------------------------------------------------


def loads(text: str, *, keep_unknown: bool = False) -> list[Entry]:
    """Parse a symbol file; return the heads of its graph.

    With `keep_unknown`, unregistered operators become nodes that cannot run.
    """
    if len(text) > MAX_TEXT:
        raise FormatError(f"The symbol JSON has {len(text)} characters; {MAX_TEXT} is the limit.")
    try:
        # MXNet does not escape control characters.
        data = json.loads(text, strict=False, parse_constant=_refuse_constant)
    except RecursionError:
        raise FormatError("The symbol JSON is nested too deeply.") from None
    except ValueError as error:
        raise FormatError(f"The text is not JSON: {error}") from None
    version = _version(data)
    attrs = data.get("attrs")
    # Without that mark, unknown sizes are 0 and (); with NumPy shapes they are -1 and None.
    is_classic = is_np_shape() and not (isinstance(attrs, dict) and "is_np_shape" in attrs)
    return _Reader(version, is_classic, keep_unknown).graph(data, 0)


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a value")


def _version(data: Any) -> int:
    attrs = _check_type(data, dict, "the symbol JSON").get("attrs", {})
    version = _check_type(attrs, dict, "attrs").get("mxnet_version")
    if version is None:
        return OLDEST
    number = version[1] if isinstance(version, list) and len(version) == 2 else version
    if not isinstance(number, int) or isinstance(number, bool):
        raise FormatError(f"attrs.mxnet_version is {str(version)[:80]}, not a number.")
    if number >= 20000:
        warnings.warn(
            f"The symbol was saved by MXNet version {number}, newer than {VERSION}: it may be read "
            "incorrectly.",
            stacklevel=5,
        )
    return number


def _check_type(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise FormatError(
            f"In the symbol JSON {where} must be a {kind.__name__}, not {type(value).__name__}."
        )
    return value


class _Reader:
    """Creates the nodes of a file, and counts them over all subgraphs."""

    def __init__(
        self, version: int, converts_shapes: bool = False, keeps_unknown: bool = False
    ) -> None:
        self.version, self.converts_shapes = version, converts_shapes
        self.keeps_unknown = keeps_unknown
        self.count = 0

    def graph(self, data: dict, depth: int) -> list[Entry]:
        if depth > MAX_DEPTH:
            raise FormatError(f"Subgraphs are nested more than {MAX_DEPTH} deep.")
        for field in _check_type(data, dict, "a graph"):
            if field not in _GRAPH_FIELDS:
                raise FormatError(
                    f"Unknown field {field[:80]!r} in the symbol JSON. "
                    f"{did_you_mean(field[:80], _GRAPH_FIELDS)}".rstrip()
                )
        rows = _check_type(_require(data, "nodes", "the symbol JSON"), list, "nodes")
        self.count += len(rows)
        if self.count > MAX_NODES:
            raise FormatError(f"The symbol JSON has more than {MAX_NODES} nodes.")
        nodes: list[Node] = []
        for row in rows:
            if self.keeps_unknown and _names_unknown(row):
                row = {**row, "outputs": _count_outputs(len(nodes), rows, data.get("heads"))}
                nodes.append(self.unknown_node(row, nodes))
            else:
                nodes.append(self.node(row, nodes, depth))
        self.check_variables(_require(data, "arg_nodes", "the symbol JSON"), nodes)
        heads = _check_type(_require(data, "heads", "the symbol JSON"), list, "heads")
        return [self.entry(h, nodes, "heads") for h in heads]

    def check_variables(self, positions: Any, nodes: list[Node]) -> None:
        for i in _check_type(positions, list, "arg_nodes"):
            if type(i) is not int or not 0 <= i < len(nodes) or nodes[i].op is not None:
                raise FormatError(f"arg_nodes names {str(i)[:80]}, which is not a variable.")

    def node(self, row: Any, before: list[Node], depth: int) -> Node:
        if type(row) is not dict or not row.keys() <= _NODE_FIELDS:
            raise _bad_row(row, len(before))
        op_name: Any = row.get("op")
        name: Any = row.get("name")
        rows: Any = row.get("inputs")
        if not (type(op_name) is type(name) is str and type(rows) is list):
            raise _bad_row(row, len(before))
        inputs = [self.entry(e, before, name) for e in rows]
        attributes = _attributes(row, name)
        if op_name != "null":
            return self.operation(op_name, name, attributes, inputs, row, depth)
        if inputs:
            raise FormatError(f"{name[:80]!r} is a variable, but has inputs.")
        variable = Node(None, name, extra=_store_attributes(attributes))
        if "__shape__" in variable.extra:
            shape = variable_shape(variable)
            if self.converts_shapes and not shape:
                del variable.extra["__shape__"]
            elif self.converts_shapes and shape and 0 in shape:
                variable.extra["__shape__"] = str(tuple(n or UNKNOWN for n in shape))
        if "__dtype__" in variable.extra:
            variable_type(variable)
        return variable

    def unknown_node(self, row: dict, before: list[Node]) -> Node:
        """Create a node of an unregistered operator."""
        name, rows = row.get("name"), row.get("inputs")
        if type(name) is not str or type(rows) is not list:
            raise _bad_row(row, len(before))
        inputs = [self.entry(e, before, name) for e in rows]
        node = Node(stand_in(row["op"], row["outputs"]), name, _attributes(row, name), inputs)
        node._signature = signature_of(node.operator, node.attrs)
        return node

    def operation(
        self, op_name: str, name: str, attributes: dict, inputs: list, row: dict, depth: int
    ) -> Node:
        op = registry.find(op_name)
        if op is None:
            raise FormatError(
                f"Failed loading Op {name[:80]} of type {op_name[:80]}: Operator {op_name[:80]} is "
                f"not registered. {did_you_mean(op_name[:80], registry.names())}".rstrip()
            )
        upgrade(op, name, attributes, inputs, self.version)
        attrs, extra = _split_attributes(op, attributes, lenient="param" in row)
        graphs = ()
        if "subgraphs" in row:
            bodies = _check_type(row["subgraphs"], list, f"subgraphs of {name[:80]!r}")
            graphs = tuple(Graph(self.graph(g, depth + 1)) for g in bodies)
        node = Node(op, name, attrs, inputs, extra=extra, subgraphs=graphs)
        try:
            node._signature = signature_of(op, attrs)
            _check_inputs(node)
        except FormatError:
            raise
        except (MXNetError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            raise FormatError(f"Failed loading Op {name[:80]} of type {op.name}: {error}") from None
        return node

    def entry(self, triple: Any, nodes: list[Node], where: str) -> Entry:
        if type(triple) is not list or not 2 <= len(triple) <= 3:
            raise FormatError(f"{where[:80]!r}: an input must be [node, output, version].")
        number, index = triple[0], triple[1]
        version = triple[2] if len(triple) == 3 else 0
        if not (type(number) is type(index) is type(version) is int):
            raise FormatError(f"{where[:80]!r}: an input must be three integers.")
        if not 0 <= number < len(nodes):
            raise FormatError(
                f"{where[:80]!r} refers to node {number}, but only the {len(nodes)} nodes before "
                "it can be its inputs (no forward references, no cycles)."
            )
        node = nodes[number]
        if not 0 <= index < (1 if node.op is None else node.signature.outputs):
            raise FormatError(
                f"{where[:80]!r} refers to output {index} of {node.name[:80]!r}, which does not "
                "exist."
            )
        if not 0 <= version <= MAX_NODES:
            raise FormatError(f"{where[:80]!r}: {version} is not a version of an input.")
        if version > node.version and node.op is None:
            node.version = version
        return Entry(node, index, version)


def _names_unknown(row: Any) -> bool:
    name = row.get("op") if type(row) is dict else None
    return type(name) is str and name != "null" and registry.find(name) is None


def _count_outputs(number: int, rows: list, heads: Any) -> int:
    """Return the number of a node's outputs that are referenced."""
    lists = [row.get("inputs") for row in rows if type(row) is dict] + [heads]
    return 1 + max(
        (
            entry[1]
            for entries in lists
            if type(entries) is list
            for entry in entries
            if type(entry) is list and len(entry) > 1 and entry[0] == number
            if type(entry[1]) is int and 0 <= entry[1] < MAX_ARRAYS
        ),
        default=0,
    )


def _bad_row(row: Any, number: int) -> FormatError:
    """Return the error for an invalid node."""
    where = f"node {number} of the symbol JSON"
    if not isinstance(row, dict):
        return FormatError(f"{where} must be an object, not {type(row).__name__}.")
    for field in row:
        if field not in _NODE_FIELDS:
            return FormatError(f"Unknown field {field[:80]!r} in {where}.")
    for field, kind in (("op", str), ("name", str), ("inputs", list)):
        if field not in row:
            return FormatError(f'Missing field "{field}" in {where}.')
        if type(row[field]) is not kind:
            return FormatError(f'"{field}" of {where} must be a {kind.__name__}.')
    return FormatError(f"{where} cannot be understood.")


def _require(row: dict, field: str, where: str) -> Any:
    if field not in row:
        raise FormatError(f'Missing field "{field}" in {where}.')
    return row[field]


def _attributes(row: dict, name: str) -> dict[str, str]:
    merged: dict[str, str] = {}
    for field in ("param", "attr", "attrs"):
        items = row.get(field)
        if items is None:
            continue
        if type(items) is not dict:
            raise FormatError(f'"{field}" of {name[:80]!r} must be an object.')
        for key, value in items.items():
            if type(value) is not str or len(value) > MAX_ATTRIBUTE:
                raise FormatError(
                    f"{name[:80]!r}: attribute {key[:80]!r} must be text of at most "
                    f"{MAX_ATTRIBUTE} characters."
                )
        merged = {**merged, **items} if merged else items
    return merged


def _store_attributes(attributes: dict[str, str]) -> dict[str, str]:
    if HIDDEN_KEYS.isdisjoint(attributes):
        return attributes
    stored = {k: v for k, v in attributes.items() if k not in HIDDEN_KEYS}
    # If both spellings exist, the bare one is used, as in MXNet.
    return stored | {stored_key(k): v for k, v in attributes.items() if k in HIDDEN_KEYS}


def _split_attributes(op: Op, attributes: dict[str, str], lenient: bool) -> tuple[dict, dict]:
    """Split attributes into the operator's and the user's.

    In files before 0.9, attributes unknown to the operator are the user's; they get the underscores
    required since then.
    """
    attrs, extra = {}, {}
    for key, value in attributes.items():
        if is_extra(key):
            extra[stored_key(key)] = value
        elif lenient and key not in op.attributes and key != op.count:
            extra[f"__{key}__"] = value
        else:
            attrs[key] = value
    return attrs, extra


def _check_inputs(node: Node) -> None:
    names = node.input_names
    if len(names) != len(node.inputs):
        raise FormatError(
            f"{node.operator.name} needs {len(names)} inputs ({', '.join(names[:20])}), but "
            f"the file gives {len(node.inputs)} to {node.name[:80]!r}."
        )


# -- files before 1.0 --------------------------------------------------------------------------


OLDEST = 800  # files without a version are taken as 0.8.0
AXIS_MEANT_ALL = 905  # before 0.9.5 argmax and argmin wrote "all axes" as -1


def upgrade(
    op: Op, name: str, attributes: dict[str, str], inputs: list[Entry], version: int
) -> None:
    """Upgrade the attributes and inputs of an old node in place."""
    if version < AXIS_MEANT_ALL and op in (argmax, argmin) and attributes.get("axis") == "-1":
        del attributes["axis"]
    for key in [k for k in attributes if k.endswith(_ENDINGS)]:
        _move_to_input(op, key, attributes, inputs)
    if op.has_aux and len(inputs) < len(op.inputs):
        _add_auxiliary(op, name, attributes, inputs)


_ENDINGS = tuple(f"_{key}" for key in HIDDEN_KEYS)


def _move_to_input(op: Op, key: str, attributes: dict[str, str], inputs: list[Entry]) -> None:
    """Move ``weight_lr_mult`` of an operator to its weight."""
    for position, parameter in enumerate(op.inputs):
        hidden = key[len(parameter.name) + 1 :]
        if (
            key.startswith(f"{parameter.name}_")
            and hidden in HIDDEN_KEYS
            and position < len(inputs)
        ):
            node = inputs[position].node
            if node.op is None:
                node.extra[f"__{hidden}__"] = attributes.pop(key)
            return


def _add_auxiliary(op: Op, name: str, attributes: dict[str, str], inputs: list[Entry]) -> None:
    """Add auxiliary states, which were not inputs before 0.9."""
    states = [i for i in op.inputs if i.aux and not i.optional]
    if not states or len(inputs) != len(op.inputs) - len(states):
        return
    shared = {stored_key(key): value for key, value in attributes.items()}
    for state in states:
        extra = {**shared, "__init__": input_init(op, state.name)}
        inputs.append(Entry(Node(None, f"{name}_{state.name}", extra=extra)))
