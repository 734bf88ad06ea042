"""What changed in symbol files before 1.0, for one node at a time."""

from __future__ import annotations

from ..ops.declare import Op
from ..ops.tensor.reduce import argmax, argmin
from .create import input_init
from .node import HIDDEN_KEYS, Entry, Node, stored_key

OLDEST = 800  # files without a version are taken as 0.8.0
AXIS_MEANT_ALL = 905  # before 0.9.5 argmax and argmin wrote "all axes" as -1


def upgrade(
    op: Op, name: str, attributes: dict[str, str], inputs: list[Entry], version: int
) -> None:
    """Bring the attributes and inputs of an old node up to date, in place."""
    if version < AXIS_MEANT_ALL and op in (argmax, argmin) and attributes.get("axis") == "-1":
        del attributes["axis"]
    for key in [k for k in attributes if k.endswith(_ENDINGS)]:
        _move_to_input(op, key, attributes, inputs)
    if op.has_aux and len(inputs) < len(op.inputs):
        _add_auxiliary(op, name, attributes, inputs)


_ENDINGS = tuple(f"_{key}" for key in HIDDEN_KEYS)


def _move_to_input(op: Op, key: str, attributes: dict[str, str], inputs: list[Entry]) -> None:
    """``weight_lr_mult`` of an operator belongs to its weight."""
    for position, known in enumerate(op.inputs):
        hidden = key[len(known.name) + 1 :]
        if key.startswith(f"{known.name}_") and hidden in HIDDEN_KEYS and position < len(inputs):
            node = inputs[position].node
            if node.op is None:
                node.extra[f"__{hidden}__"] = attributes.pop(key)
            return


def _add_auxiliary(op: Op, name: str, attributes: dict[str, str], inputs: list[Entry]) -> None:
    """Before 0.9 auxiliary states were no inputs."""
    states = [i for i in op.inputs if i.aux and not i.optional]
    if not states or len(inputs) != len(op.inputs) - len(states):
        return
    shared = {stored_key(key): value for key, value in attributes.items()}
    for state in states:
        extra = {**shared, "__init__": input_init(op, state.name)}
        inputs.append(Entry(Node(None, f"{name}_{state.name}", extra=extra)))
