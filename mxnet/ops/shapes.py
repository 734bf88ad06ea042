"""Shape and dtype rules with partial information, in both directions if possible.

A shape is a tuple, or None when nothing is known; a size of -1 is unknown. Rules come first;
torch's meta tensors, which cost up to milliseconds, are the fallback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, overload

import torch

from .. import dtypes
from ..error import DTypeError, MXNetError, ShapeError
from .kernel_errors import translate

if TYPE_CHECKING:
    from .declare import Op

Shape = tuple[int, ...]
Shapes = list[Shape | None]
KnownShapes = list[Shape]
UNKNOWN = -1
# Two probe sizes: output sizes that differ between the two runs are unknown.
_PROBES = (83, 89)


def is_known(shape: Shape | None) -> TypeGuard[Shape]:
    """Return whether every size is known.

    >>> is_known((2, 3)), is_known((2, -1)), is_known(None)
    (True, False, False)
    """
    return shape is not None and UNKNOWN not in shape


def given_shapes(shapes: Sequence[Shape | None]) -> KnownShapes | None:
    """Return the shapes if none of them is None; sizes may be unknown.

    >>> given_shapes([(2, -1), ()]), given_shapes([(2,), None])
    ([(2, -1), ()], None)
    """
    results = [s for s in shapes if s is not None]
    return results if len(results) == len(shapes) else None


@overload
def unify(first: Shape, second: Shape | None, what: str = ...) -> Shape: ...
@overload
def unify(first: Shape | None, second: Shape, what: str = ...) -> Shape: ...
@overload
def unify(first: Shape | None, second: Shape | None, what: str = ...) -> Shape | None: ...
def unify(first: Shape | None, second: Shape | None, what: str = "shapes") -> Shape | None:
    """Merge two partial shapes.

    >>> unify((2, -1), (-1, 3))
    (2, 3)
    """
    if first is None or first == second:
        return second
    if second is None:
        return first
    if len(first) != len(second):
        raise ShapeError(f"{what} differ: expected {list(first)}, got {list(second)}")
    sizes = []
    for a, b in zip(first, second, strict=True):
        if a != b and UNKNOWN not in (a, b):
            raise ShapeError(f"{what} differ: expected {list(first)}, got {list(second)}")
        sizes.append(b if a == UNKNOWN else a)
    return tuple(sizes)


def same(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """All inputs and outputs have the same shape, inferred in every direction."""
    shape = None
    for i, other in enumerate([*ins, *outs]):
        shape = unify(shape, other, f"input {i}" if i < len(ins) else "the output")
    return [shape] * len(ins), [shape] * len(outs)


def broadcast_two(a: Shape, b: Shape) -> Shape:
    """Broadcast two (partial) shapes."""
    wide = max(len(a), len(b))
    a, b = (1,) * (wide - len(a)) + a, (1,) * (wide - len(b)) + b
    sizes = []
    for x, y in zip(a, b, strict=True):
        if x == y or y == 1:
            sizes.append(x)
        elif x == 1:
            sizes.append(y)
        elif UNKNOWN in (x, y):
            sizes.append(UNKNOWN)
        else:
            raise ShapeError(
                f"operands could not be broadcast together with shapes {list(a)} {list(b)}"
            )
    return tuple(sizes)


def broadcast(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """NumPy broadcasting of all inputs; inputs are not inferred from the output."""
    shape: Shape | None = ()
    for other in ins:
        if other is None:
            return ins, outs
        shape = broadcast_two(shape, other)
    return ins, [unify(shape, o, "the output") for o in outs]


def reduced_axes(axis: Any, ndim: int, exclude: bool = False) -> tuple[int, ...]:
    """Return the reduced axes; by default all.

    >>> reduced_axes((1, -1), 4), reduced_axes(None, 2), reduced_axes((0,), 3, exclude=True)
    ((1, 3), (0, 1), (1, 2))
    """
    if axis is None or axis == ():
        return tuple(range(ndim))
    axes = (axis,) if isinstance(axis, int) else axis
    for a in axes:
        if not -ndim <= a < ndim:
            raise ShapeError(f"Reduction axis {a} exceeds the input's {ndim} dimensions")
    chosen = {a % ndim for a in axes}
    if len(chosen) < len(axes):
        raise ShapeError(f"Reduction axes {tuple(axes)} name one axis twice")
    return tuple(a for a in range(ndim) if (a in chosen) != exclude)


def reduced(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """The axes in ``axis`` are removed or become 1; a full reduction has shape ``(1,)``."""
    data = ins[0]
    if data is None:
        return ins, outs
    axes = reduced_axes(attrs.get("axis"), len(data), attrs.get("exclude", False))
    if attrs.get("keepdims"):
        shape = tuple(1 if i in axes else n for i, n in enumerate(data))
    else:
        shape = tuple(n for i, n in enumerate(data) if i not in axes) or (1,)
    return ins, [unify(shape, o, "the output") for o in outs]


def fill_unknown(shape: Shape, probe: int) -> Shape:
    """Return the shape with unknown sizes replaced by a probe."""
    return tuple(probe if n == UNKNOWN else n for n in shape)


def run_on_meta(op: Op, shapes: Sequence[Shape], types: Sequence[Any], attrs: dict) -> list:
    """Run the operator on meta tensors and return its outputs."""
    meta = torch.device("meta")
    tensors = [
        torch.empty(s, dtype=t or torch.float32, device=meta)
        for s, t in zip(shapes, types, strict=True)
    ]
    present = op.names_of_inputs(attrs, len(tensors))
    if op.variadic is None and op.optional:
        by_name = dict(zip(present, tensors, strict=True))
        tensors = [by_name.get(i.name) for i in op.inputs]
    try:
        out = op.function(*tensors, **attrs, **op.context_for(False, meta))
    except MXNetError:
        raise
    except (RuntimeError, IndexError, ValueError, TypeError) as error:
        raise ShapeError(str(translate(error, tensors))) from None
    return list(out) if isinstance(out, tuple | list) else [out]


def by_meta(op: Op, ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Infer by meta tensors; run twice with different probes to find unknown sizes."""
    input_shapes = given_shapes(ins)
    if input_shapes is None:
        return ins, outs
    types = [None] * len(ins)
    runs = []
    probes = _PROBES if any(UNKNOWN in s for s in input_shapes) else _PROBES[:1]
    for probe in probes:
        try:
            output = run_on_meta(op, [fill_unknown(s, probe) for s in input_shapes], types, attrs)
        except ShapeError:
            if len(probes) == 1:
                raise
            return ins, outs  # an unknown size has constraints
        runs.append([tuple(t.shape) for t in output])
    results = []
    for shapes in zip(*runs, strict=True):
        if len({len(s) for s in shapes}) > 1:
            return ins, outs
        results.append(
            tuple(n[0] if len(set(n)) == 1 else UNKNOWN for n in zip(*shapes, strict=True))
        )
    return ins, [unify(f, o, "the output") for f, o in zip(results, outs, strict=True)]


def infer_by_rules(op: Op, ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Infer input and output shapes by the operator's rules, else by meta tensors."""
    ins, outs = list(ins), list(outs)
    _complete_inputs(op, ins, attrs)
    if op.shape_rule is not None:
        return op.shape_rule(ins, outs, attrs)
    if op.output_rule is None:
        return by_meta(op, ins, outs, attrs)
    result = op.output_rule(*_by_position(op, ins, attrs), **attrs)
    if result is None:
        return ins, outs
    if isinstance(result, tuple):  # one shape; a list is one shape for each output
        result = [result] * len(outs)
    return ins, [unify(f, o, "the output") for f, o in zip(result, outs, strict=True)]


def _by_position(op: Op, ins: Shapes, attrs: dict) -> Shapes:
    if op.variadic is not None or len(ins) == len(op.inputs):
        return ins
    by_name = dict(zip(op.names_of_inputs(attrs, len(ins)), ins, strict=True))
    return [by_name.get(i.name) for i in op.inputs]


def _complete_inputs(op: Op, ins: Shapes, attrs: dict) -> None:
    """Infer shapes of inputs from those of other inputs.

    Attributes alone are not enough, as in MXNet.
    """
    if op.input_rule is not None and ins and ins[0] is not None:
        complete_inputs(op, ins, attrs)


def complete_inputs(op: Op, ins: Shapes, attrs: dict) -> None:
    """Complete `ins` by the operator's rule."""
    if op.input_rule is None:
        return
    names = op.names_of_inputs(attrs, len(ins))
    inferred = op.input_rule(*_by_position(op, ins, attrs), **attrs) or {}
    for position, name in enumerate(names):
        if name in inferred:
            ins[position] = unify(inferred[name], ins[position], f"{name}: shapes")


class TypePattern:
    """Dtypes of inputs and outputs as a pattern: ``"T I -> T"``.

    A capital letter is a type variable, ``@dtype`` the attribute of that name (when it is None,
    the first variable; ``@dtype=int32`` says what else), a name such as ``float32`` itself. The
    last word of each side applies to all that follow. Without a pattern everything has one type.
    """

    def __init__(self, pattern: str | None) -> None:
        left, _, right = (pattern or "T -> T").partition("->")
        self.takes_inputs = bool(left.split())
        self.ins = left.split() or ["T"]
        self.outs = right.split() or ["T"]

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Bind the variables to known types, then read all types from them."""
        words = [_word(self.ins, i) for i in range(len(ins))]
        words += [_word(self.outs, i) for i in range(len(outs))]
        bound: dict[str, torch.dtype] = {}
        for position, (word, dtype) in enumerate(zip(words, [*ins, *outs], strict=True)):
            if dtype is None or not word.isupper():
                continue
            if bound.setdefault(word, dtype) is not dtype:
                raise DTypeError(
                    f"Incompatible attr in node {op.name} at {position}-th input: expected "
                    f"{dtypes.to_name(bound[word])}, got {dtypes.to_name(dtype)}"
                )
        inferred = [
            dtype if dtype is not None else self._read(word, bound, attrs)
            for word, dtype in zip(words, [*ins, *outs], strict=True)
        ]
        return inferred[: len(ins)], inferred[len(ins) :]

    def _read(self, word: str, bound: dict, attrs: dict) -> torch.dtype | None:
        if word.startswith("@"):
            name, _, otherwise = word[1:].partition("=")
            dtype = attrs.get(name)
            if dtype is not None:
                return dtypes.to_torch(dtype)
            follows = self.takes_inputs and self.ins[0].isupper()
            word = otherwise or (self.ins[0] if follows else "float32")
        if word.isupper():
            return bound.get(word)
        return dtypes.to_torch(word)


def _word(words: list[str], position: int) -> str:
    return words[position] if position < len(words) else words[-1]


Rule = Callable[[Shapes, Shapes, dict], tuple[Shapes, Shapes]]
