"""Detectors in two parts: what they compute of an image, and what a suppression makes of boxes.

Rounding decides which of two boxes with nearly equal scores suppresses the other, so two programs
that compute the same may detect different boxes. Given the same boxes, they must not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ..graph import Entry, Node
from ..graph.graph import interpret
from ..graph.node import variable
from ..symbol import Symbol
from .comparison.differences import difference_of_rows
from .free_sizes import Sizes
from .source import SUPPRESSIONS, Difference, Model, columns_of, compare

Feed = dict[str, np.ndarray]


@dataclass
class OpenModel:
    """A model whose suppression nodes read new inputs.

    The values that they read before are outputs.
    """

    model: Model
    sizes: Sizes
    cases: dict[str, Feed]
    columns: list[tuple[int, ...]]  # of the class and the score, for each of the last outputs

    def compare(self, case: str, outputs: list[np.ndarray]) -> list[Difference]:
        """Return the differences of the outputs of a converted file."""
        references = self.model.run_as_written(self.cases[case])
        count = len(outputs) - len(self.columns)
        boxes = zip(outputs[count:], references[count:], self.columns, strict=True)
        errors = [
            difference_of_rows(torch.from_numpy(a), torch.from_numpy(b), columns)
            for a, b, columns in boxes
        ]
        heads = compare(outputs[:count], references[:count], range(count))
        return [*heads, *(Difference(*error) for error in errors)]


def open_suppressions(source: Model, sizes: Sizes, cases: Mapping[str, Feed]) -> OpenModel:
    """Return a model with open suppressions, with MXNet's boxes for each case."""
    entries: list[Entry] = []
    boxes: list[Entry] = []  # the same in the copy of the graph
    columns: list[tuple[int, ...]] = []
    added: list[Node] = []
    copies: dict[str, Node] = {}

    def copy_variable(node: Node) -> Entry:
        copies[node.name] = node.copy(())
        return Entry(copies[node.name])

    def copy_node(node: Node, inputs: list[Entry]) -> list[Entry]:
        if node.op in SUPPRESSIONS:
            entries.extend(node.inputs)
            boxes.extend(inputs)
            columns.extend([columns_of(node)] * len(inputs))
            own = [variable(f"boxes{len(added) + i}") for i in range(len(inputs))]
            added.extend(own)
            inputs = [Entry(n) for n in own]
        copy = node.copy(inputs)
        return [Entry(copy, i) for i in range(node.outputs)]

    heads = interpret(source.graph, copy_variable, copy_node)
    reader = replace(source, symbol=Symbol(entries))
    names = [n.name for n in added]
    feeds = {c: {**f, **dict(zip(names, reader.run(f), strict=True))} for c, f in cases.items()}
    first = next(iter(feeds.values()))
    model = replace(
        source,
        symbol=Symbol([*heads, *boxes]),
        inputs=[copies[n.name] for n in source.inputs] + added,
        shapes={**source.shapes, **{n: first[n].shape for n in names}},
        dtypes={**source.dtypes, **{n: torch.from_numpy(first[n]).dtype for n in names}},
    )
    return OpenModel(model, {**sizes, **_name_sizes(sizes, names, feeds)}, feeds, columns)


def _name_sizes(sizes: Sizes, names: list[str], feeds: Mapping[str, Feed]) -> dict[str, tuple]:
    """Return the sizes of boxes, with a name for each that is not the same in all cases."""
    batch: Any = next((s[0] for s in sizes.values() if s and isinstance(s[0], str)), "batch")
    result = {}
    for name in names:
        shapes = zip(*(feed[name].shape for feed in feeds.values()), strict=True)
        result[name] = tuple(
            column[0] if len(set(column)) == 1 else f"{name}_{axis}" if axis else batch
            for axis, column in enumerate(shapes)
        )
    return result
