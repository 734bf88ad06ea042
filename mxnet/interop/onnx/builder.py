"""`Builder` collects ONNX nodes; `row` registers the export rule of an operator."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from ...graph import Node
from ...ops.declare import Op
from ...ops.shapes import UNKNOWN, Shape
from .library import UnsupportedExport, load_onnx, numpy_dtype, onnx_dtype

Emit = Callable[..., "str | Sequence[str]"]
E = TypeVar("E", bound=Emit)
INT64 = torch.int64
FAR = 2**62  # an end beyond any axis
FLOATS = (torch.float16, torch.float32, torch.float64, torch.bfloat16)


@dataclass
class Call:
    """The node to export, with its inferred shapes and types.

    A size of -1 is known only at run time.
    """

    node: Node
    attrs: dict[str, Any]
    shapes: list[Shape]
    dtypes: list[torch.dtype]
    out_shapes: list[Shape]
    out_dtypes: list[torch.dtype]
    constant: Callable[[int], np.ndarray | None] = field(repr=False)
    export_graph: Callable[..., tuple[list[str], list[torch.dtype]]] = field(repr=False)

    @property
    def op(self) -> Op:
        """The operator of the node."""
        return operator_of(self.node)

    @property
    def name(self) -> str:
        """The name of the node."""
        return self.node.name

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the first input."""
        return self.dtypes[0]

    @property
    def shape(self) -> Shape:
        """The shape of the first input."""
        return self.shapes[0]

    @property
    def ndim(self) -> int:
        """The rank of the first input."""
        return len(self.shapes[0])

    @property
    def axis(self) -> int:
        """The attribute `axis`, counted from the front."""
        return self.attrs["axis"] % self.ndim

    def axes(self, key: str = "axis") -> list[int]:
        """Return an attribute of one axis, several, or None (all), counted from the front."""
        axes = self.attrs[key]
        if axes is None:
            return list(range(self.ndim))
        return [a % self.ndim for a in ((axes,) if isinstance(axes, int) else axes)]

    def unsupported(self, why: str) -> UnsupportedExport:
        """Return the error that this node cannot be exported."""
        return UnsupportedExport(f"ONNX export: operator {self.op.name} (node {self.name!r}) {why}")

    def require_sizes(self, sizes: Sequence[int], why: str = "needs all sizes as numbers.") -> None:
        """Raise if one of the sizes is known only at run time."""
        if UNKNOWN in sizes:
            raise self.unsupported(why)

    def evaluate(self, *tensors: torch.Tensor) -> torch.Tensor:
        """Run the operator itself, for results that depend only on shapes and attributes."""
        extra = self.op.context_for(False, torch.device("cpu"))
        return self.op.kernel(*tensors, **self.attrs, **extra)


class UnsizedFill(NamedTuple):
    """A constant-filled array whose sizes are inferred from its consumers at run time.

    It is not a node: rows that support it use its `value`, others raise `error`.
    """

    value: float
    error: UnsupportedExport


class Builder:
    """The nodes and constants of one ONNX graph.

    Any ONNX operator is a method: ``g.Relu(x)``, ``g.Split(x, axis=1, outputs=2)``. Lowercase
    methods hide differences between opsets. The body of a loop or branch has a `parent`.
    """

    def __init__(self, opset: int, parent: Builder | None = None) -> None:
        self.opset = opset
        self.parent = parent
        self.nodes: list[Any] = []
        self.inputs: list[str] = []  # names defined by a loop for its body
        self.scope = ""
        self.taken: set[str] = parent.taken if parent else set()
        self.initializers: dict[str, np.ndarray] = parent.initializers if parent else {}
        self._constants: dict[tuple, str] = parent._constants if parent else {}
        # Nodes with 32-bit sums, and the corresponding real numbers.
        self.real_sums: dict[str, str] = parent.real_sums if parent else {}
        self.unsized: dict[str, UnsizedFill] = parent.unsized if parent else {}

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if not op_type[:1].isupper():
            raise AttributeError(op_type)
        return partial(self.add, op_type)

    def add(
        self, op_type: str, *inputs: str, outputs: int | Sequence[str] = 1, **attrs: Any
    ) -> Any:
        """Add a node and return the name of its output, or a list of names."""
        onnx = load_onnx()
        for name in inputs:
            if name in self.unsized:
                raise self.unsized[name].error
        single = outputs == 1
        if isinstance(outputs, int):
            outputs = [self.unique(f"{self.scope}_{op_type.lower()}") for _ in range(outputs)]
        attrs = {k: v for k, v in attrs.items() if v is not None}
        name = self.unique(f"{self.scope}_{op_type}")
        self.nodes.append(onnx.helper.make_node(op_type, inputs, list(outputs), name, **attrs))
        return outputs[0] if single else list(outputs)

    def unique(self, hint: str) -> str:
        """Return a name that is not used in the model yet."""
        name, number = hint, 0
        while name in self.taken:
            number += 1
            name = f"{hint}_{number}"
        self.taken.add(name)
        return name

    # -- constants --------------------------------------------------------------------------

    def array(self, value: Any) -> str:
        """Add a constant array."""
        value = np.asarray(value)
        key = (value.shape, value.dtype.str, value.tobytes())
        if key not in self._constants:
            self._constants[key] = name = self.unique(f"{self.scope}_const")
            self.initializers[name] = value
        return self._constants[key]

    def ints(self, *values: int) -> str:
        """Add a vector of int64, as shapes and axes are given."""
        return self.array(np.array(values, dtype=np.int64))

    def scalar(self, value: float, dtype: torch.dtype) -> str:
        """Add a constant without axes."""
        return self.array(np.array(value, dtype=numpy_dtype(dtype)))

    def output(self, call: Call, value: np.ndarray) -> str:
        """Return a constant array as the first output of a node, in its dtype."""
        return self.Identity(self.array(value.astype(numpy_dtype(call.out_dtypes[0]))))

    # -- differences between opsets --------------------------------------------------------

    def reduce(
        self, op_type: str, x: str, axes: Sequence[int] | None, keepdims: bool = True
    ) -> str:
        """Reduce over axes; None is all of them."""
        saved = int(keepdims)
        as_input = self.opset >= (13 if op_type == "ReduceSum" else 18)
        if axes is None:
            return self.add(op_type, x, keepdims=saved)
        if as_input:
            return self.add(op_type, x, self.ints(*axes), keepdims=saved)
        return self.add(op_type, x, axes=list(axes), keepdims=saved)

    def squeeze(self, x: str, *axes: int) -> str:
        """Drop axes of size 1."""
        if self.opset >= 13:
            return self.Squeeze(x, self.ints(*axes))
        return self.Squeeze(x, axes=list(axes))

    def unsqueeze(self, x: str, *axes: int) -> str:
        """Insert axes of size 1; they are positions in the result."""
        if self.opset >= 13:
            return self.Unsqueeze(x, self.ints(*axes))
        return self.Unsqueeze(x, axes=list(axes))

    def split(self, x: str, sizes: Sequence[int], axis: int) -> list[str]:
        """Split along an axis into parts of the given sizes."""
        if self.opset >= 13:
            result = self.Split(x, self.ints(*sizes), axis=axis, outputs=len(sizes))
        else:
            result = self.Split(x, split=list(sizes), axis=axis, outputs=len(sizes))
        return result if isinstance(result, list) else [result]

    def resize(self, x: str, *, scales: str = "", sizes: str = "", **options: Any) -> str:
        """Resize by factors, or to sizes."""
        # Before opset 13 an unused input is an empty array, afterward it has no name.
        none = "" if self.opset >= 13 else self.array(np.zeros(0, dtype=np.float32))
        target = [scales] if scales else [none, sizes]
        return self.Resize(x, none, *target, **options)

    # -- common steps -----------------------------------------------------------------------

    def cast(self, x: str, source: torch.dtype | None, target: torch.dtype) -> str:
        """Convert a value unless it has the type already."""
        return x if source is target else self.Cast(x, to=onnx_dtype(target))

    def cast_all(self, call: Call, xs: Sequence[str], target: torch.dtype) -> list[str]:
        """Convert the inputs of a node to one type."""
        return [self.cast(x, t, target) for x, t in zip(xs, call.dtypes, strict=True)]

    def reshape(self, x: str, shape: Sequence[int]) -> str:
        """Reshape to sizes in ONNX's form: 0 copies a size, -1 is inferred."""
        return self.Reshape(x, self.ints(*shape))

    def slice(
        self,
        x: str,
        starts: Sequence[int],
        ends: Sequence[int],
        axes: Sequence[int],
        steps: Sequence[int] | None = None,
    ) -> str:
        """Slice some axes."""
        bounds = [self.ints(*starts), self.ints(*ends), self.ints(*axes)]
        return self.Slice(x, *bounds, *([self.ints(*steps)] if steps else []))

    def flip(self, x: str, axes: Sequence[int]) -> str:
        """Reverse the order along axes."""
        count = len(axes)
        return self.slice(x, [-1] * count, [-FAR] * count, axes, [-1] * count)

    def transpose(self, x: str, *perm: int) -> str:
        """Permute the axes."""
        return x if list(perm) == sorted(perm) else self.Transpose(x, perm=list(perm))

    def size_of(self, x: str, axis: int) -> str:
        """Return a vector with one size, read when the model runs."""
        return self.Gather(self.Shape(x), self.ints(axis), axis=0)

    def axis_size(self, x: str, shape: Shape, axis: int) -> str:
        """Return a vector with one size: a constant where it is known."""
        return self.size_of(x, axis) if shape[axis] == UNKNOWN else self.ints(shape[axis])

    def positions(self, x: str, shape: Shape, axis: int) -> str:
        """Return the indices ``0, 1, ...`` of an axis as a vector."""
        if shape[axis] != UNKNOWN:
            return self.array(np.arange(shape[axis], dtype=np.int64))
        size = self.squeeze(self.size_of(x, axis), 0)
        return self.Range(self.scalar(0, INT64), size, self.scalar(1, INT64))

    def sizes(self, x: str, shape: Shape) -> str:
        """Return the shape of a value: a constant where it is known."""
        return self.Shape(x) if UNKNOWN in shape else self.ints(*shape)

    def pad(self, x: str, before: Sequence[int], after: Sequence[int], value: str = "") -> str:
        """Pad with a constant on both sides of every axis."""
        return self.Pad(x, self.ints(*before, *after), *([value] if value else []))

    def reshape_to(self, call: Call, x: str, source: Shape, target: Shape) -> str:
        """Reshape with at most one unknown size, apart from copied sizes."""
        if target.count(UNKNOWN) <= 1:
            return self.reshape(x, target)
        copied = [
            0 if n == UNKNOWN and i < len(source) and source[i] == UNKNOWN else n
            for i, n in enumerate(target)
        ]
        same_front = all(a == b for a, b in zip(source, target, strict=False) if UNKNOWN in (a, b))
        if copied.count(UNKNOWN) <= 1 and same_front:
            return self.reshape(x, copied)
        raise call.unsupported(
            f"reshapes {source} to {target}, where several sizes are known only when the model "
            "runs. Pass more of them as numbers in in_shapes or dynamic_input_shapes."
        )


def operator_of(node: Node) -> Op:
    """Return the operator of a node that is not a variable."""
    if node.op is None:
        raise ValueError(f"{node.name!r} is a variable")
    return node.op


def is_float(dtype: torch.dtype) -> bool:
    """Return whether a dtype is a floating-point one."""
    return dtype in FLOATS


class Row(NamedTuple):
    """Export rule of an operator.

    `emit` is called as ``emit(builder, call, *input_names)`` and returns the name of each output.
    `ignores` has inputs that are used only in training, such as labels. `first_suffix` returns the
    suffix of the first output's name, by default "0" for several outputs, else "".
    """

    emit: Emit
    ignores: tuple[str, ...]
    since: int
    first_suffix: Callable[[Call], str] | None

    def name_outputs(self, call: Call, count: int) -> list[str]:
        """Return the names MXNet's exporter gives outputs: ``fc1``, or ``split0``, ``split1``."""
        if self.first_suffix is not None:
            first = self.first_suffix(call)
        else:
            first = "" if count == 1 else "0"
        return [f"{call.name}{first}", *(f"{call.name}{i}" for i in range(1, count))]


DOMAINS = (
    *("pointwise", "reductions", "shapes", "indexing", "layers", "loops", "vision"),
    *("quantized", "interchange", "refused"),
)
_rows: dict[str, Row] = {}
_refused: dict[str, str] = {}


def row(
    *names: str,
    ignores: tuple[str, ...] = (),
    since: int = 12,
    first_suffix: Callable[[Call], str] | None = None,
) -> Callable[[E], E]:
    """Register the export rule of operators, for a minimum opset."""

    def register(emit: E) -> E:
        for name in names:
            if name in _rows:
                raise ValueError(f"operator {name!r} has two ONNX rows")
            _rows[name] = Row(emit, ignores, since, first_suffix)
        return emit

    return register


def refuse(*names: str, why: str) -> None:
    """Register the reason why operators cannot be exported, and an alternative."""
    _refused.update(dict.fromkeys(names, why))


def why_refused(name: str) -> str:
    """Return the reason why an operator cannot be exported."""
    usual = (
        "has no ONNX form here. A torch program may have it: mx convert MODEL --to torch. "
        "mx.onnx.get_operator_support() lists the operators that can be exported."
    )
    return _refused.get(name, usual)


@cache
def rows() -> dict[str, Row]:
    """Return all rows by the registered name of their operator."""
    for domain in DOMAINS:
        importlib.import_module(f".rows.{domain}", __package__)
    return _rows
