"""Computes the size of a model after expansion of its functions.

Nested functions may expand a file of a kilobyte to millions of nodes. Sizes are computed by
function, and a model that is too large for its file raises an error before expansion.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ....error import FormatError

__all__ = ["MAX_FUNCTION_DEPTH", "check_size", "max_nodes"]

MAX_FUNCTION_DEPTH = 32
# Maximum nodes and bytes: base, and per byte of the file.
MIN_NODES, NODES_PER_BYTE = 5_000, 0.05
MIN_BYTES, BYTES_PER_BYTE = 16 << 20, 16

Key = tuple[str, str]


class Size(NamedTuple):
    """Number of nodes and bytes after expansion."""

    nodes: int
    bytes: int


def max_nodes(file_bytes: int) -> int:
    """Return the maximum number of nodes of an expanded model."""
    return MIN_NODES + int(NODES_PER_BYTE * file_bytes)


def check_size(model: Any, name: str, file_bytes: int) -> None:
    """Raise if functions expand a model beyond its limits."""
    if not model.functions:
        return
    sizes = _Sizes({(f.domain, f.name): f for f in model.functions}, name)
    nodes, size = sizes.add_up(model.graph.node, 0)
    if nodes > max_nodes(file_bytes) or size > MIN_BYTES + BYTES_PER_BYTE * file_bytes:
        raise FormatError(
            f"{name}: its functions stand for {nodes} nodes of {size} bytes, too many for a file "
            f"of {file_bytes} bytes."
        )


class _Sizes:
    def __init__(self, functions: dict[Key, Any], name: str) -> None:
        self.functions = functions
        self.name = name
        self.sizes: dict[Key, Size] = {}

    def add_up(self, nodes: Iterable[Any], depth: int) -> Size:
        if depth > MAX_FUNCTION_DEPTH:
            raise FormatError(
                f"{self.name}: functions are nested deeper than {MAX_FUNCTION_DEPTH}, or call "
                "themselves."
            )
        count = total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            parts = [Size(1, node.ByteSize())]
            if key in self.functions:
                parts.append(self._function(key, depth + 1))
            for attribute in node.attribute:
                graphs = [*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])]
                parts += [self.add_up(graph.node, depth) for graph in graphs]
            count += sum(p.nodes for p in parts)
            total += sum(p.bytes for p in parts)
        return Size(count, total)

    def _function(self, key: Key, depth: int) -> Size:
        if key not in self.sizes:
            self.sizes[key] = self.add_up(self.functions[key].node, depth)
        return self.sizes[key]
