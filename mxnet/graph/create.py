"""Make a node as MXNet composes one: variables stand in for the inputs that are missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..error import MXNetError
from ..ops.declare import Op
from .node import Entry, Node, signature_of, user_line


def input_init(op: Op, name: str) -> str | None:
    """Return the ``__init__`` attribute that an operator gives to one of its inputs."""
    position = op.input_index.get(name)
    aux = op.inputs[position].aux if position is not None else None
    if aux is not None:
        return f'["{aux.init}", {{}}]'
    return op.facts.input_init.get(name)


def create_node(
    op: Op,
    name: str,
    attrs: dict[str, str],
    extra: dict[str, str],
    given: dict[str, Entry],
    count: int = 0,
) -> Node:
    """Return the node of an operator applied to the inputs `given` by name.

    `count` is how many inputs a variadic operator has. Missing inputs become variables that carry
    the operator's attributes, as MXNet's do.
    """
    signature = signature_of(op, attrs)
    names = op.names_of_inputs(signature.attrs, count)
    if len(given) > len(names) or not given.keys() <= set(names):
        raise _not_an_input(op, next(k for k in given if k not in names), names)
    source = user_line()
    inputs = []
    for key in names:
        entry = given.get(key)
        if entry is None:
            if not op.auto_inputs:
                raise MXNetError(
                    f"Not enough argument to call operator {op.name}: input {key!r} is missing."
                )
            made = Node(
                None, f"{name}_{key}" if name else key, extra={**attrs, **extra}, source=source
            )
            entry = Entry(made)
        inputs.append(entry)
    if op.has_aux or op.mutates or op.facts.input_init:
        _update_variables(op, names, inputs, signature.attrs)
    node = Node(op, name, attrs, inputs, extra=extra, source=source)
    node._signature = signature
    return node


def atomic(node: Node) -> tuple[Entry, ...]:
    """Return the results of a node's operator with its attributes, but with no inputs or name."""
    made = Node(node.op, "", node.attrs, extra=node.extra, subgraphs=node.subgraphs)
    return tuple(Entry(made, i) for i in range(node.outputs))


def is_atomic(heads: Sequence[Entry]) -> bool:
    """Return whether these are results of an operator that waits for its inputs."""
    node = heads[0].node
    return not node.name and node.op is not None and not node.inputs


def apply_atomic(
    node: Node, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Entry, ...]:
    """Return the results of an atomic node's operator, applied to symbols."""
    op = node.operator
    count = int(node.attrs.get(op.count, len(args))) if op.count else 0
    names = op.names_of_inputs(signature_of(op, node.attrs).attrs, count)
    given = {k: v._heads[0] for k, v in {**dict(zip(names, args, strict=False)), **kwargs}.items()}
    made = create_node(op, name, node.attrs, node.extra, given, count)
    return tuple(Entry(made, i) for i in range(made.outputs))


def _update_variables(op: Op, names: list[str], inputs: list[Entry], attrs: dict[str, Any]) -> None:
    """Give initializers to the inputs that have them, and count versions of changed ones."""
    changed = {*op.mutates, *op.aux_names(attrs)}
    for position, key in enumerate(names):
        node = inputs[position].node
        if node.op is not None:
            continue
        init = input_init(op, key)
        if init is not None and "__init__" not in node.extra:
            node.extra["__init__"] = init
        if key in changed:
            node.version += 1
            inputs[position] = Entry(node, 0, node.version)


def _not_an_input(op: Op, key: str, names: list[str]) -> MXNetError:
    known = "\n".join(f"\t[{i}]{n}" for i, n in enumerate(names))
    return MXNetError(
        f"Symbol.ComposeKeyword argument name {key} not found in operator {op.name}.\n"
        f"Candidate arguments:\n{known}"
    )
