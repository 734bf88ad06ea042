"""A node of a graph: an operator applied to entries, or a variable."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..caches import store
from ..ops.declare import Epilogue, Op

if TYPE_CHECKING:
    from .graph import Graph

# These may be written without underscores everywhere; files hold them as ``__x__``.
HIDDEN_KEYS = frozenset({"ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage"})
MAX_CACHED_SIGNATURES = 8192
_PACKAGE = str(Path(__file__).resolve().parent.parent) + "/"
_signatures: dict[tuple, Signature] = {}


class Entry(NamedTuple):
    """One output of one node.

    `version` counts how often a variable had been given to operators that change it, this one
    included; model files carry it.
    """

    node: Node
    index: int = 0  # pyright: ignore[reportIncompatibleMethodOverride] (nobody calls tuple's)
    version: int = 0


class Signature(NamedTuple):
    """What an operator and its attributes say about every node that has them."""

    attrs: dict[str, Any]
    outputs: int
    total: int
    key: tuple


class Node:
    """An operator applied to its inputs; without an operator, a variable.

    `attrs` are the operator's attributes as the user gave them, in MXNet's text form; `extra` are
    the attributes of users and scopes (``__lr_mult__``). A variable has only the latter.
    """

    __slots__ = (
        "_signature",
        "attrs",
        "extra",
        "inputs",
        "name",
        "op",
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
        """What the operator says under these attributes; wrong attributes are errors here."""
        known = self._signature
        if known is None:
            known = self._signature = signature_of(self.operator, self.attrs)
        return known

    @property
    def typed(self) -> dict[str, Any]:
        """All attributes of the operator, typed, defaults filled in. Do not change it."""
        return self.signature.attrs

    @property
    def epilogue(self) -> Epilogue | None:
        """The function of each element that this node is to fused operators, if they know it."""
        rule = None if self.op is None else self.op.epilogue_rule
        return None if rule is None else rule(self.typed)

    @property
    def outputs(self) -> int:
        """How many outputs a user sees."""
        return 1 if self.op is None else self.signature.outputs

    @property
    def input_names(self) -> list[str]:
        """The operator's names of the inputs that are present."""
        if self.op is None:
            return []
        return self.op.names_of_inputs(self.typed, len(self.inputs))

    def output_names(self) -> list[str]:
        """Return MXNet's names of the visible outputs: ``fc1_output``; a variable's is its own.

        Outputs to which the operator gives no names are numbered if there are several, hidden
        ones included: ``box_nms0_output0``.
        """
        if self.op is None:
            return [self.name]
        attrs, outputs, total, _ = self.signature
        names = self.op.names_of_outputs(attrs)
        if names is None:
            names = ["output"] if total == 1 else [f"output{i}" for i in range(outputs)]
        return [f"{self.name}_{n}" for n in names] if self.name else list(names)

    def all_attributes(self) -> dict[str, str]:
        """Return the operator's and the user's attributes together."""
        return {**self.attrs, **self.extra} if self.extra else dict(self.attrs)

    def set_attribute(self, key: str, value: str) -> None:
        """Set one attribute; what the operator does not know is an error and changes nothing."""
        if self.op is None or is_extra(key):
            self.extra[stored_key(key)] = value
            return
        changed = {**self.attrs, key: value}
        self._signature = signature_of(self.op, changed)
        self.attrs = changed

    def copy(self, inputs: Sequence[Entry]) -> Node:
        """Return a node like this one with other inputs."""
        made = Node(
            self.op,
            self.name,
            dict(self.attrs),
            inputs,
            extra=dict(self.extra),
            source=self.source,
            subgraphs=self.subgraphs,
        )
        made.version, made._signature = self.version, self._signature
        return made


def variable(name: str, extra: dict[str, str] | None = None) -> Node:
    """Return an input of a graph."""
    return Node(None, name, extra=extra, source=user_line())


def signature_of(op: Op, attrs: dict[str, str]) -> Signature:
    """Return the (cached) facts of an operator under attributes in text form."""
    items = tuple(attrs.items())
    key = (op, items)
    known = _signatures.get(key)
    if known is not None:
        return known
    typed = op.complete(op.parse(attrs))
    known = Signature(typed, op.number_of_outputs(typed), op.total_outputs(typed), items)
    # What a variadic operator without a count is depends on more than its attributes (Custom).
    if op.variadic is None or op.count is not None:
        store(_signatures, key, known, MAX_CACHED_SIGNATURES)
    return known


def is_extra(key: str) -> bool:
    """Return whether a key is never an operator's own attribute."""
    return key in HIDDEN_KEYS or (key.startswith("__") and key.endswith("__"))


def stored_key(key: str) -> str:
    """Return the spelling of an attribute in nodes and files.

    >>> stored_key("lr_mult"), stored_key("mood")
    ('__lr_mult__', 'mood')
    """
    return f"__{key}__" if key in HIDDEN_KEYS else key


def both_spellings(attributes: dict[str, str]) -> dict[str, str]:
    """Return the attributes with hidden keys under both of their spellings.

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
    """Return which inputs are auxiliary states: kept between calls and changed in place."""
    op = node.operator
    if op.auxiliary_rule is not None:
        return op.auxiliary_rule(node)
    if not (op.has_aux or op.mutates):
        return []
    kept = {*op.aux_names(node.typed), *op.mutates}
    return [i for i, name in enumerate(node.input_names) if name in kept]


def user_line() -> tuple[str, int] | None:
    """Return file and line of the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if not filename.startswith(_PACKAGE):
            return filename, frame.f_lineno
        frame = frame.f_back
    return None
