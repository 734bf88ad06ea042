"""Expands functions of a file and of ONNX into nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....error import FormatError
from ..library import load_onnx
from .budget import MAX_FUNCTION_DEPTH, max_nodes
from .reading import infer_shapes
from .value import importers

__all__ = ["expand_functions"]

DOMAINS = ("", "ai.onnx")


def expand_functions(model: Any) -> Any:
    """Return a model without functions: all nodes are operators that have rows, where possible."""
    local = {(f.domain, f.name): f for f in model.functions}
    opset = next((o.version for o in model.opset_import if o.domain in DOMAINS), 0)
    if not local and not _has_functions(model.graph):
        return model
    expanded = load_onnx().ModelProto()
    expanded.CopyFrom(model)
    _Expansion(expanded, local, opset).run()
    del expanded.functions[:]
    return expanded


def _has_functions(graph: Any) -> bool:
    rows = importers()
    return any(
        n.op_type not in rows
        or n.domain not in DOMAINS
        or any(a.HasField("g") and _has_functions(a.g) for a in n.attribute)
        for n in graph.node
    )


class _Expansion:
    def __init__(self, model: Any, local: Mapping[tuple[str, str], Any], opset: int) -> None:
        self.model = model
        self.local = local
        self.opset = opset
        self.count, self.max_nodes = 0, max_nodes(model.ByteSize())
        self.types: dict[str, Any] = {}

    def run(self) -> None:
        """Expand until nothing changes; some definitions need the types of values."""
        for _ in range(MAX_FUNCTION_DEPTH):
            self._infer()
            if not self._graph(self.model.graph):
                return
        raise FormatError(f"ONNX import: functions are nested deeper than {MAX_FUNCTION_DEPTH}.")

    def _infer(self) -> None:
        onnx = load_onnx()
        graph = infer_shapes(self.model).graph
        self.types = {i.name: i.type for i in (*graph.value_info, *graph.input, *graph.output)}
        for tensor in graph.initializer:
            kind = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
            self.types.setdefault(tensor.name, kind)

    def _graph(self, graph: Any) -> bool:
        is_changed, nodes = False, []
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    is_changed |= self._graph(attribute.g)
            body = self._definition(node)
            if body is None:
                nodes.append(node)
                continue
            nodes.extend(self._inline(node, body))
            is_changed = True
            if self.count > self.max_nodes:  # functions of ONNX itself are among them
                raise FormatError(
                    f"ONNX import: functions expand to more than {self.max_nodes} nodes."
                )
        if is_changed:
            saved = [_copy(n) for n in nodes]
            del graph.node[:]
            graph.node.extend(saved)
        return is_changed

    def _definition(self, node: Any) -> Any:
        """Return the function of a node without a row, or None."""
        results = self.local.get((node.domain, node.op_type))
        if results is not None:
            return results
        if node.domain in DOMAINS and node.op_type in importers():
            return None
        onnx, opset = load_onnx(), self._version(node.domain)
        try:
            schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
        except onnx.defs.SchemaError:
            return None
        body = onnx.FunctionProto()
        if schema.has_function:
            versions = [v for v in schema.function_opset_versions if v <= self.opset]
            body.ParseFromString(schema.get_function_with_opset_version(max(versions)))
            return body
        if not schema.has_context_dependent_function:
            return None
        versions = [v for v in schema.context_dependent_function_opset_versions if v <= self.opset]
        kinds = [self.types.get(n, onnx.TypeProto()).SerializeToString() for n in node.input]
        try:
            text = schema.get_context_dependent_function_with_opset_version(
                max(versions), node.SerializeToString(), kinds
            )
        except Exception:  # without types ONNX has no definition
            return None
        body.ParseFromString(text)
        return body if body.node else None

    def _inline(self, node: Any, body: Any) -> list[Any]:
        self.count += len(body.node)
        prefix = f"{node.name or node.output[0]}_{self.count}_"
        names = {"": ""}
        names.update(zip(body.output, node.output, strict=False))
        for i, name in enumerate(body.input):
            names[name] = node.input[i] if i < len(node.input) else ""
        attrs = dict(self._defaults(node))
        attrs.update({a.name: a for a in body.attribute_proto})
        attrs.update({a.name: a for a in node.attribute})
        output = [_rename(n, names, prefix, attrs) for n in body.node]
        output += self._pass_inputs(node, body, names)
        return output

    def _defaults(self, node: Any) -> dict[str, Any]:
        onnx = load_onnx()
        try:
            schema = onnx.defs.get_schema(node.op_type, self._version(node.domain), node.domain)
        except onnx.defs.SchemaError:
            return {}
        return {n: a.default_value for n, a in schema.attributes.items() if a.default_value.name}

    def _version(self, domain: str) -> int:
        versions = (o.version for o in self.model.opset_import if o.domain == domain)
        return self.opset if domain in DOMAINS else next(versions, 1)

    def _pass_inputs(self, node: Any, body: Any, names: Mapping[str, str]) -> list[Any]:
        """Return nodes for outputs that are inputs of the function."""
        produced = {o for n in body.node for o in n.output}
        helper = load_onnx().helper
        return [
            helper.make_node("Identity", [node.input[list(body.input).index(inner)]], [outer])
            for inner, outer in zip(body.output, node.output, strict=False)
            if inner not in produced and outer
        ]


def _copy(node: Any) -> Any:
    copy = load_onnx().NodeProto()
    copy.CopyFrom(node)
    return copy


def _rename(node: Any, names: dict[str, str], prefix: str, attrs: Mapping[str, Any]) -> Any:
    renamed = _copy(node)
    renamed.name = f"{prefix}{node.name or node.op_type}"
    for i, name in enumerate(node.input):
        renamed.input[i] = names.get(name, name)
    for i, name in enumerate(node.output):
        renamed.output[i] = names.setdefault(name, f"{prefix}{name}")
    del renamed.attribute[:]
    for attribute in node.attribute:
        source = attribute
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in attrs:
                continue  # the operator's default applies
            source = attrs[attribute.ref_attr_name]
        copy = renamed.attribute.add()
        copy.CopyFrom(source)
        copy.name = attribute.name
        if copy.HasField("g"):
            _rename_body(copy.g, dict(names), prefix, attrs)
    return renamed


def _rename_body(graph: Any, names: dict[str, str], prefix: str, attrs: Mapping[str, Any]) -> None:
    for info in (*graph.input, *graph.initializer):
        names[info.name] = info.name = f"{prefix}{info.name}"
    nodes = [_rename(n, names, prefix, attrs) for n in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for info in graph.output:
        info.name = names.get(info.name, info.name)
    del graph.value_info[:]
