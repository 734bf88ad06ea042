"""Names under which monitors and hooks show the values of a graph, which are MXNet's."""

from __future__ import annotations

from ..ops.declare import Op
from ..ops.tensor.arithmetic import BY_NAME, add_n
from .node import Node, auxiliary_positions

# Its gradient is that of its output: MXNet shows none.
_PASSES_GRADIENTS_ON = BY_NAME["add"].elementwise


def input_rows(node: Node) -> list[str]:
    """Return the names of a node's inputs, such as ``fc1_data``."""
    names = node.input_names
    if names == ("data",) and not node.operator.facts.names_single_input:
        names = ("input0",)
    return [f"{node.name}_{n}" for n in names]


def hidden_rows(node: Node) -> tuple[str | None, list[str]]:
    """Return the names of a node's hidden outputs, and the attribute that shows them, if any."""
    switch, names = node.operator.facts.hidden_outputs or (None, ())
    if switch is not None and node.typed[switch]:
        return None, []
    return switch, [f"{node.name}_{n}" for n in names]


def gradient_rows(node: Node) -> list[str | None]:
    """Return the names of the gradients of a node's inputs; None where MXNet shows none."""
    op = node.operator
    if op is _PASSES_GRADIENTS_ON:
        return [None] * len(node.inputs)
    if op is add_n:
        return ["output"] * len(node.inputs)
    states = set(auxiliary_positions(node)) if op.has_aux else set()
    positions = [i for i in range(len(node.inputs)) if i not in states]
    rows: list[str | None] = [None] * len(node.inputs)
    for position, name in zip(positions, _gradient_names(node, op, positions), strict=False):
        rows[position] = name and f"{node.name}_backward_{name}"
    return rows


def has_joint_gradient(node: Node) -> bool:
    """Return whether MXNet computes the gradients of all inputs in one operator."""
    op = node.operator
    names = op.facts.gradient_names
    return op is not add_n and (names is None or None in names)


def _gradient_names(node: Node, op: Op, positions: list[int]) -> list[str | None]:
    if op.facts.gradient_names is not None:
        return list(op.facts.gradient_names)
    if op.facts.gradients_by_input:
        return [node.input_names[i] for i in positions]
    return ["output"] if len(positions) == 1 else [f"output{i}" for i in range(len(positions))]


def hook_names(node: Node) -> list[str]:
    """Return what hooks call a node's outputs: their names, or numbers where MXNet has none."""
    names, op = node.output_names(), node.operator
    own = op.names_of_outputs(node.typed)
    numbered = own is None or list(own) == [f"output{i}" for i in range(len(own))]
    if numbered and not op.facts.names_output:
        return [f"{node.name}_{i}" for i in range(len(names))]
    return names
