"""What flows between ONNX nodes during an import."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...error import MXNetError
from ...symbol import Symbol
from ..library import load_onnx

if TYPE_CHECKING:
    from .walk import Importer


class UnsupportedImport(MXNetError, NotImplementedError):
    """A node of an ONNX file cannot be built from symbols."""


class NeedsConstant(UnsupportedImport):
    """A node needs a value at import that follows from inputs of the model.

    `roots` are these inputs.
    """

    def __init__(self, message: str, name: str, roots: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.name = name
        self.roots = list(roots) or [name]


class Sizes(Sequence[int]):
    """A shape of which single sizes, ranges or all are read; those must be known."""

    def __init__(self, name: str, shape: tuple[int | None, ...] | None) -> None:
        self.name = name
        self.shape = shape

    def __getitem__(self, key: Any) -> Any:
        found = None if self.shape is None else self.shape[key]
        if found is None or (isinstance(found, tuple) and None in found):
            raise UnsupportedImport(
                f"ONNX import: the shape of {self.name!r} must be known, it is {self.shape}. "
                "Give numbers for the sizes of the model's inputs."
            )
        return found

    def __iter__(self) -> Iterator[int]:
        return iter(self[:])

    def __len__(self) -> int:
        return len(self.shape or ())


@dataclass
class Value:
    """A tensor of the ONNX graph: a symbol, a constant, or both.

    `shape` is a tuple with None for sizes that are not known; it is None if not even the rank is.
    `dtype` is NumPy's, or None. `elements` is what is known of a small vector's numbers.
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
        made = self.symbol_or_none
        if made is None:
            made = self.symbol_or_none = self.importer.parameter(self.name, self.constant)
        return made

    @property
    def rank(self) -> int:
        """The number of axes."""
        if self.shape is None:
            raise UnsupportedImport(f"ONNX import: the rank of {self.name!r} is not known.")
        return len(self.shape)

    @property
    def sizes(self) -> Sizes:
        """The shape; reading a size that is not known is an error."""
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

    def ints(self, key: str, value: Value | None = None) -> list[int] | None:
        """Return integers from an attribute or, in newer opsets, from an input."""
        if value is not None:
            return [int(n) for n in self.constant(value, key).ravel()]
        found = self.get(key)
        return None if found is None else [int(n) for n in found]

    def required_ints(self, key: str, value: Value | None = None) -> list[int]:
        """Return integers that must be given."""
        found = self.ints(key, value)
        if found is None:
            raise self.unsupported(f"has no {key}.")
        return found

    def output_shape(self, index: int = 0) -> tuple[int | None, ...] | None:
        """Return the inferred shape of an output."""
        return self.importer.shapes.get(self.output_names[index])

    def output_dtype(self, index: int = 0) -> np.dtype | None:
        """Return the inferred dtype of an output."""
        return self.importer.dtypes.get(self.output_names[index])


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(v) for v in value]
    return value
