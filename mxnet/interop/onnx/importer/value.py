"""The values, nodes and the table of rows for import.

`F` has the functions that build symbols. They are generated, so a type checker knows little.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from .... import symbol
from ....base import is_np_shape
from ....error import MXNetError
from ....symbol import Symbol
from ..library import load_onnx

if TYPE_CHECKING:
    from .walk import Importer

F: Any = symbol
internal: Any = F._internal
Build = Callable[..., Any]
B = TypeVar("B", bound=Build)
MAX_ELEMENTS = 1 << 28  # maximum bytes of an array in a small file


class UnsupportedImport(MXNetError, NotImplementedError):
    """Raised if a node of an ONNX file cannot be imported."""


class NeedsConstant(UnsupportedImport):
    """Raised if a node needs a value at import that depends on inputs of the model.

    `roots` are these inputs.
    """

    def __init__(self, message: str, name: str, roots: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.roots = list(roots) or [name]


class Sizes(Sequence[int]):
    """A shape that raises if an unknown size is read."""

    def __init__(self, name: str, shape: tuple[int | None, ...] | None) -> None:
        self.name = name
        self.shape = shape

    def __getitem__(self, key: Any) -> Any:
        sizes = None if self.shape is None else self.shape[key]
        if sizes is None or (isinstance(sizes, tuple) and None in sizes):
            raise UnsupportedImport(
                f"ONNX import: the shape of {self.name!r} must be known, it is {self.shape}. Use "
                "numbers for the sizes of the model's inputs."
            )
        return sizes

    def __iter__(self) -> Iterator[int]:
        return iter(self[:])

    def __len__(self) -> int:
        return len(self.shape or ())


@dataclass
class Value:
    """A tensor of the ONNX graph: a symbol, a constant, or both.

    `shape` is a tuple with None for unknown sizes, or None if the rank is unknown.
    `dtype` is NumPy's, or None. `elements` are the known numbers of a small vector.
    """

    name: str
    symbol_or_none: Symbol | None = None
    constant: np.ndarray | None = None
    shape: Any = None
    dtype: Any = None
    importer: Any = field(default=None, repr=False)
    elements: Any = None

    @property
    def symbol(self) -> Symbol:
        """The value as a symbol; a constant becomes a parameter."""
        symbol = self.symbol_or_none
        if symbol is None:
            symbol = self.symbol_or_none = self.importer.parameter(self.name, self.constant)
        return symbol

    @property
    def rank(self) -> int:
        """The number of axes."""
        if self.shape is None:
            raise UnsupportedImport(f"ONNX import: the rank of {self.name!r} is not known.")
        return len(self.shape)

    def axis(self, axis: int) -> int:
        """Return an axis counted from the front; an axis out of range raises an error."""
        return axis_within(axis, self.rank)

    def with_rank(self, rank: int) -> Any:
        """Return the value as a symbol with leading axes of size 1."""
        return with_rank(self.symbol, self.rank, rank)

    @property
    def sizes(self) -> Sizes:
        """The shape; reading an unknown size raises an error."""
        return Sizes(self.name, self.shape)

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating-point numbers."""
        return self.dtype is not None and (self.dtype.kind == "f" or self.dtype.name == "bfloat16")

    @property
    def is_bool(self) -> bool:
        """Whether the elements are truth values."""
        return self.dtype is not None and self.dtype.kind == "b"


@dataclass
class SequenceValue:
    """A sequence of tensors whose length is known at import."""

    name: str
    items: list[Any]


class OnnxNode:
    """One node of an ONNX graph, with its attributes as Python values."""

    def __init__(self, proto: Any, importer: Importer) -> None:
        helper = load_onnx().helper
        self.proto = proto
        self.importer = importer
        self.op_type: str = proto.op_type
        self.opset = importer.opset
        self.output_names = list(proto.output)
        self.attrs = {a.name: _plain(helper.get_attribute_value(a)) for a in proto.attribute}
        self.name = proto.name or (self.output_names[0] if self.output_names else proto.op_type)

    def get(self, key: str, default: Any = None) -> Any:
        """Return an attribute."""
        return self.attrs.get(key, default)

    def flag(self, key: str, default: int = 0) -> bool:
        """Return an attribute of 0 or 1."""
        return bool(self.attrs.get(key, default))

    def parameter(self, array: Any, hint: str) -> Symbol:
        """Return a new constant as a symbol, named after the node."""
        return self.importer.parameter(f"{self.name}_{hint}", np.asarray(array))

    def unsupported(self, why: str) -> UnsupportedImport:
        """Return the error that this node cannot be imported."""
        return UnsupportedImport(f"ONNX import: {self.op_type} (node {self.name!r}) {why}")

    def constant(self, value: Value, what: str) -> np.ndarray:
        """Return an input that must be known at import."""
        if value.constant is None:
            roots = self.importer.depends_on(value.symbol)
            raise NeedsConstant(
                f"ONNX import: {self.op_type} (node {self.name!r}) needs its {what} "
                f"({value.name!r}) as a constant of the file.",
                value.name,
                roots,
            )
        return value.constant

    def item(self, value: Value, what: str) -> Any:
        """Return the only element of an input that must be known at import."""
        return self.constant(value, what).item()

    def ints(self, key: str, value: Value | None = None) -> list[int] | None:
        """Return integers from an attribute or, in newer opsets, from an input."""
        if value is not None:
            return [int(n) for n in self.constant(value, key).ravel()]
        numbers = self.get(key)
        return None if numbers is None else [int(n) for n in numbers]

    def required_ints(self, key: str, value: Value | None = None) -> list[int]:
        """Return integers that must be given."""
        numbers = self.ints(key, value)
        if numbers is None:
            raise self.unsupported(f"has no {key}.")
        return numbers

    def output_shape(self, index: int = 0) -> tuple[int | None, ...] | None:
        """Return the inferred shape of an output."""
        return self.importer.shapes.get(self.output_names[index])

    def output_dtype(self, index: int = 0) -> np.dtype | None:
        """Return the inferred dtype of an output."""
        return self.importer.dtypes.get(self.output_names[index])

    def stored_dtype(self, index: int = 0) -> np.dtype | None:
        """Return the dtype of an output in the file, which MXNet may lack."""
        return self.importer.stored_dtypes.get(self.output_names[index])


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v) for v in value]
    return value


# -- the table of rows ----------------------------------------------------------------------

DOMAINS = ("pointwise", "reductions", "shapes", "layers", "loops", "vision", "quantized")
_rows: dict[str, Build] = {}


def imports(*op_types: str) -> Callable[[B], B]:
    """Register how ONNX operators are built from symbols: ``build(node, *values)``."""

    def register(build: B) -> B:
        for op_type in op_types:
            if op_type in _rows:
                raise ValueError(f"ONNX operator {op_type!r} has two rows")
            _rows[op_type] = build
        return build

    return register


@cache
def importers() -> dict[str, Build]:
    """Return all rows by ONNX operator."""
    for domain in DOMAINS:
        importlib.import_module(f".rows.{domain}", __package__)
    return _rows


def direct(op_type: str, function: Any, outputs: int = 1, **attrs: Any) -> None:
    """Import an ONNX operator as one of MXNext's.

    `attrs` are the defaults of attributes, ``(name, default)`` where ONNX has another name. Truth
    values and tuples are converted.
    """
    specs = {ours: s if isinstance(s, tuple) and s else (ours, s) for ours, s in attrs.items()}

    @imports(op_type)
    def build(node: OnnxNode, *values: Value | None) -> Any:
        options = {}
        for ours, (theirs, default) in specs.items():
            option = node.get(theirs, default)
            kind = type(default)
            options[ours] = kind(option) if kind in (bool, tuple) else option
        symbols = [v.symbol for v in values if v is not None]
        output = function(*symbols, **options, name=node.name)
        return output if outputs == 1 else [output[i] for i in range(outputs)]


# -- axes -----------------------------------------------------------------------------------


def axis_within(axis: int, rank: int) -> int:
    """Return an axis counted from the front; an axis out of range raises an error."""
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} of {rank} axes")
    return axis % rank


def with_rank(x: Any, rank: int, target: int) -> Any:
    """Add leading axes of size 1 to a symbol of `rank` axes."""
    if rank == 0 and target:
        return F.reshape(x, shape=(1,) * target)
    for _ in range(target - rank):
        x = F.expand_dims(x, axis=0)
    return x


def as_scalar(x: Any, name: str | None = None) -> Any:
    """Return one element without axes; outside NumPy's shapes it keeps one."""
    return F.reshape(x, shape=() if is_np_shape() else (1,), name=name)
