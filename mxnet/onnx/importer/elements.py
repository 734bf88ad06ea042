"""What is known of small arrays of integers: exporters compute shapes element by element.

An element is a number, the name of a dynamic size, or None. A shape such as ``(batch, 6, 32)`` is
thus known except for its batch, and a reshape to it needs no computation when the model runs.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .value import OnnxNode, Value

__all__ = ["Element", "elements_of", "infer_elements"]

Element = int | str | None
MAX_ELEMENTS = 64


def elements_of(value: Value | None) -> tuple[Element, ...] | None:
    """Return the elements of a value of at most one axis, if something is known of them."""
    if not isinstance(value, Value):
        return None
    if value.constant is not None:
        array = np.asarray(value.constant)
        if array.ndim > 1 or array.dtype.kind not in "iu" or array.size > MAX_ELEMENTS:
            return None
        return tuple(int(n) for n in array.ravel())
    return value.elements


def infer_elements(node: OnnxNode, inputs: Sequence[Value | None]) -> tuple[Element, ...] | None:
    """Return what is known of the elements of a node's first output, None if nothing is."""
    rule = RULES.get(node.op_type)
    if rule is None:
        return None
    if node.op_type == "Shape":
        return _shape(node, inputs[0])
    given = [elements_of(v) for v in inputs]
    if not given or given[0] is None:
        return None
    return rule(node, *given)


def _shape(node: OnnxNode, x: Any) -> tuple[Element, ...] | None:
    if x is None or x.shape is None:
        return None
    names = node.importer.dims.get(x.name, x.shape)
    if len(names) != len(x.shape):
        names = x.shape
    found = [n if known is None else known for known, n in zip(x.shape, names, strict=True)]
    return tuple(found[slice(node.get("start"), node.get("end"))])


def _same(node: OnnxNode, x: Any, *_: Any) -> Any:
    return x


def _gather(node: OnnxNode, x: Any, places: Any) -> Any:
    if places is None or any(not isinstance(p, int) or not -len(x) <= p < len(x) for p in places):
        return None
    return tuple(x[p] for p in places)


def _slice(node: OnnxNode, x: Any, *rest: Any) -> Any:
    if rest:
        bounds = [*rest, *[None] * 4][:4]
    else:
        bounds = [node.get("starts"), node.get("ends"), node.get("axes"), None]
    starts, ends, _, steps = bounds
    known = [b for b in (starts, ends, steps or (1,)) if b is not None]
    if len(known) < 3 or any(len(b) != 1 or not isinstance(b[0], int) for b in known):
        return None
    return x[slice(known[0][0], known[1][0], known[2][0])]


def _concat(node: OnnxNode, *parts: Any) -> Any:
    return None if None in parts else tuple(e for p in parts for e in p)


def _arithmetic(function: Callable[[int, int], int], neutral: int) -> Callable[..., Any]:
    def rule(node: OnnxNode, x: Any, y: Any) -> Any:
        if y is None or (len(x) != len(y) and 1 not in (len(x), len(y))):
            return None
        size = max(len(x), len(y)) if x and y else 0
        pairs = zip((x * size)[:size], (y * size)[:size], strict=True)
        return tuple(_applied(function, neutral, a, b) for a, b in pairs)

    return rule


def _applied(function: Callable, neutral: int, a: Element, b: Element) -> Element:
    if isinstance(a, int) and isinstance(b, int):
        return None if function is _divided and b == 0 else function(a, b)
    return a if b == neutral else None


def _divided(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)  # ONNX rounds toward 0


RULES: dict[str, Callable[..., Any]] = {
    "Shape": _shape,
    "Gather": _gather,
    "Slice": _slice,
    "Concat": _concat,
    "Cast": _same,
    "Identity": _same,
    "Squeeze": _same,
    "Unsqueeze": _same,
    "Add": _arithmetic(operator.add, 0),
    "Sub": _arithmetic(operator.sub, 0),
    "Mul": _arithmetic(operator.mul, 1),
    "Div": _arithmetic(_divided, 1),
}
