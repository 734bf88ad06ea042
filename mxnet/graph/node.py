"""`Node`: an operator applied to entries, or a variable; and functions that create nodes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .._process.caches import store
from ..error import MXNetError
from ..ops.declare import Epilogue, Op

if TYPE_CHECKING:
    from .graph import Graph


# Keys that users may write without underscores; files have ``__x__``.
HIDDEN_KEYS = frozenset({"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"})
MAX_CACHED_SIGNATURES = 8192
_PACKAGE = str(Path(__file__).resolve().parent.parent) + "/"
_signatures: dict[tuple, Signature] = {}
_next_serial, _next_key = count().__next__, count().__next__


class Entry(NamedTuple):
    """An output of a node.

    `version` counts the uses of a variable by operators that mutate it, including this one; it is
    stored in model files.
    """

    node: Node
    index: int = 0  # pyright: ignore[reportIncompatibleMethodOverride] (tuple.index is not used)
    version: int = 0


class Signature(NamedTuple):
    """Facts shared by all nodes of the same operator and attributes.

    `key` is a unique number per operator and attributes. `unknown` is the initial state of
    inference: None for each output. `inputs` are the names of the inputs, or None if they depend on
    the number of inputs.
    """

    attrs: dict[str, Any]
    outputs: int
    total: int
    key: int
    unknown: tuple[None, ...]
    inputs: tuple[str, ...] | None

    def input_names(self, op: Op, count: int) -> tuple[str, ...]:
        """Return the operator's names of the inputs that are present."""
        return tuple(op.names_of_inputs(self.attrs, count)) if self.inputs is None else self.inputs


class Node:
    """An operator applied to its inputs, or a variable (no operator).

    `attrs` are the operator's attributes as strings in MXNet's format; `extra` are user and scope
    attributes (``__lr_mult__``), the only ones of a variable. `serial` increases in order of
    creation.
    """

    __slots__ = (
        "_signature",
        "attrs",
        "extra",
        "inputs",
        "name",
        "op",
        "serial",
        "source",
        "subgraphs",
        "version",
    )

    def __init__(
        self,
        op: Op | None,
        name: str,
        attrs: dict[str, str] | None = None,
        inputs: Sequence[Entry] = (),
        *,
        extra: dict[str, str] | None = None,
        source: tuple[str, int] | None = None,
        subgraphs: tuple[Graph, ...] = (),
    ) -> None:
        self.op = op
        self.name = name
        self.attrs = attrs or {}
        self.extra = extra or {}
        self.inputs = inputs
        self.source = source
        self.subgraphs = subgraphs
        self.version = 0
        self.serial = _next_serial()
        self._signature: Signature | None = None

    def __repr__(self) -> str:
        return f"<{self.op.name if self.op else 'variable'} {self.name}>"

    @property
    def is_variable(self) -> bool:
        """Whether this is an input of the graph."""
        return self.op is None

    @property
    def operator(self) -> Op:
        """The operator of a node that is not a variable."""
        assert self.op is not None, f"{self.name} is a variable"
        return self.op

    @property
    def signature(self) -> Signature:
        """The signature of operator and attributes; raises for invalid attributes."""
        signature = self._signature
        if signature is None:
            signature = self._signature = signature_of(self.operator, self.attrs)
        return signature

    @property
    def typed(self) -> dict[str, Any]:
        """All attributes of the operator, parsed and with defaults. Do not modify it."""
        return self.signature.attrs

    @property
    def epilogue(self) -> Epilogue | None:
        """The elementwise function that fused operators can apply for this node, or None."""
        rule = None if self.op is None else self.op.epilogue_rule
        return None if rule is None else rule(self.typed)

    @property
    def outputs(self) -> int:
        """The number of visible outputs."""
        return 1 if self.op is None else self.signature.outputs

    @property
    def input_names(self) -> tuple[str, ...]:
        """The operator's names of the present inputs."""
        if self.op is None:
            return ()
        return self.signature.input_names(self.op, len(self.inputs))

    def output_names(self) -> list[str]:
        """Return MXNet's names of the visible outputs, such as ``fc1_output``.

        If the operator has no output names, several outputs (including hidden ones) are numbered:
        ``box_nms0_output0``.
        """
        if self.op is None:
            return [self.name]
        attrs, outputs, total, *_ = self.signature
        names = self.op.names_of_outputs(attrs)
        if names is None:
            names = ["output"] if total == 1 else [f"output{i}" for i in range(outputs)]
        return [f"{self.name}_{n}" for n in names] if self.name else list(names)

    def all_attributes(self) -> dict[str, str]:
        """Return the operator's and the user's attributes in one dict."""
        return {**self.attrs, **self.extra} if self.extra else dict(self.attrs)

    def set_attribute(self, key: str, value: str) -> None:
        """Set an attribute; raise for unknown ones."""
        if self.op is None or is_extra(key):
            self.extra[stored_key(key)] = value
            return
        changed = {**self.attrs, key: value}
        self._signature = signature_of(self.op, changed)
        self.attrs = changed

    def copy(self, inputs: Sequence[Entry]) -> Node:
        """Return a copy of this node with different inputs."""
        copy = Node(
            self.op,
            self.name,
            dict(self.attrs),
            inputs,
            extra=dict(self.extra),
            source=self.source,
            subgraphs=self.subgraphs,
        )
        copy.version, copy._signature = self.version, self._signature
        return copy


def variable(name: str, extra: dict[str, str] | None = None) -> Node:
    """Create a variable node."""
    return Node(None, name, extra=extra, source=user_line())


def signature_of(op: Op, attrs: dict[str, str]) -> Signature:
    """Return the cached signature of an operator and attributes as strings."""
    items = tuple(attrs.items())
    key = (op, items)
    signature = _signatures.get(key)
    if signature is not None:
        return signature
    typed = op.complete(op.parse(attrs))
    outputs, total = op.number_of_outputs(typed), op.total_outputs(typed)
    counts_inputs = op.variadic is not None and not op.names_inputs
    inputs = None if counts_inputs else tuple(op.names_of_inputs(typed))
    signature = Signature(typed, outputs, total, _next_key(), (None,) * outputs, inputs)
    # Do not cache variadic operators without an input count (Custom): more than the attributes
    # determines their outputs.
    if op.variadic is None or op.count is not None:
        store(_signatures, key, signature, MAX_CACHED_SIGNATURES)
    return signature


def is_extra(key: str) -> bool:
    """Return whether a key cannot be an operator's attribute."""
    return key in HIDDEN_KEYS or (key.startswith("__") and key.endswith("__"))


def stored_key(key: str) -> str:
    """Return the spelling of an attribute in nodes and files.

    >>> stored_key("lr_mult"), stored_key("mood")
    ('__lr_mult__', 'mood')
    """
    return f"__{key}__" if key in HIDDEN_KEYS else key


def both_spellings(attributes: dict[str, str]) -> dict[str, str]:
    """Return the attributes with hidden keys in both spellings.

    >>> both_spellings({"__lr_mult__": "2"})
    {'__lr_mult__': '2', 'lr_mult': '2'}
    """
    shown = {}
    for key, value in attributes.items():
        shown[key] = value
        if key[:2] == "__" and key[2:-2] in HIDDEN_KEYS:
            shown[key[2:-2]] = value
    return shown


def auxiliary_positions(node: Node) -> list[int]:
    """Return the positions of the auxiliary states, which the operator mutates."""
    op = node.operator
    if op.auxiliary_rule is not None:
        return op.auxiliary_rule(node)
    if not (op.has_aux or op.mutates):
        return []
    states = {*op.aux_names(node.typed), *op.mutates}
    return [i for i, name in enumerate(node.input_names) if name in states]


def user_line() -> tuple[str, int] | None:
    """Return file and line of the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_PACKAGE):
            return filename, frame.f_lineno
        frame = frame.f_back
    return None


def input_init(op: Op, name: str) -> str | None:
    """Return the ``__init__`` attribute that an operator sets on one of its inputs."""
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
    """Create the node of an operator applied to the inputs `given` by name.

    `count` is the number of inputs of a variadic operator. Missing inputs become variables with the
    operator's attributes, as in MXNet.
    """
    signature = signature_of(op, attrs)
    names = signature.input_names(op, count)
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
            variable = Node(
                None, f"{name}_{key}" if name else key, extra={**attrs, **extra}, source=source
            )
            entry = Entry(variable)
        inputs.append(entry)
    if op.has_aux or op.mutates or op.facts.input_init:
        _update_variables(op, names, inputs, signature.attrs)
    node = Node(op, name, attrs, inputs, extra=extra, source=source)
    node._signature = signature
    return node


def atomic(node: Node) -> tuple[Entry, ...]:
    """Return an atomic node's results: operator and attributes without inputs and name."""
    bare = Node(node.op, "", node.attrs, extra=node.extra, subgraphs=node.subgraphs)
    return tuple(Entry(bare, i) for i in range(node.outputs))


def is_atomic(heads: Sequence[Entry]) -> bool:
    """Return whether these are results of an atomic node."""
    node = heads[0].node
    return not node.name and node.op is not None and not node.inputs


def apply_atomic(
    node: Node, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Entry, ...]:
    """Apply the operator of an atomic node to inputs; return the results."""
    op = node.operator
    count = int(node.attrs.get(op.count, len(args))) if op.count else 0
    names = signature_of(op, node.attrs).input_names(op, count)
    entries = {
        k: v._heads[0] for k, v in {**dict(zip(names, args, strict=False)), **kwargs}.items()
    }
    applied = create_node(op, name, node.attrs, node.extra, entries, count)
    return tuple(Entry(applied, i) for i in range(applied.outputs))


def _update_variables(
    op: Op, names: Sequence[str], inputs: list[Entry], attrs: dict[str, Any]
) -> None:
    """Set initializers of input variables, and increase the versions of mutated ones."""
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


def _not_an_input(op: Op, key: str, names: Sequence[str]) -> MXNetError:
    candidates = "\n".join(f"\t[{i}]{n}" for i, n in enumerate(names))
    return MXNetError(
        f"Symbol.ComposeKeyword argument name {key} not found in operator {op.name}.\n"
        f"Candidate arguments:\n{candidates}"
    )
