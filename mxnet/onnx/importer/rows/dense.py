"""Import rows of matrix products and attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ....base import is_np_shape
from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value
from .axes import with_rank


@imports("Gemm")
def gemm(node: OnnxNode, a: Value, b: Value, c: Value | None = None) -> Any:
    """``alpha A B + beta C``; a dense layer where it is one."""
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    turn_a, turn_b = bool(node.get("transA", 0)), bool(node.get("transB", 0))
    is_bias = c is None or (c.shape is not None and len(c.shape) == 1)
    is_plain = alpha == 1 and (beta == 1 or c is None) and not turn_a and turn_b
    if is_plain and is_bias and b.shape is not None and b.shape[0] is not None:
        width = b.shape[0]
        if c is None:
            return F.FullyConnected(
                a.symbol, b.symbol, num_hidden=width, no_bias=True, name=node.name
            )
        if c.shape == (width,):
            return F.FullyConnected(a.symbol, b.symbol, c.symbol, num_hidden=width, name=node.name)
    made = F.dot(a.symbol, b.symbol, transpose_a=turn_a, transpose_b=turn_b)
    made = made if alpha == 1 else made * alpha
    if c is None:
        return made
    shift = c.symbol if beta == 1 else c.symbol * beta
    if c.shape == ():
        shift = F.reshape(shift, shape=(1, 1))
    return F.broadcast_add(made, shift, name=node.name)


@imports("FC")
def fully_connected(node: OnnxNode, x: Value, w: Value, b: Value) -> Any:
    """Caffe2's dense layer, which early files hold."""
    return F.FullyConnected(
        x.symbol, w.symbol, b.symbol, num_hidden=w.sizes[0], flatten=True, name=node.name
    )


@imports("MatMul")
def matmul(node: OnnxNode, a: Value, b: Value) -> Any:
    """Matrix product as NumPy defines it."""
    if a.shape is None or b.shape is None:
        return F._internal._npi_matmul(a.symbol, b.symbol, name=node.name)
    return multiply(a.symbol, b.symbol, a.shape, b.shape, node.name)


def multiply(a: Any, b: Any, left: Any, right: Any, name: str | None = None) -> Any:
    """Return the product of stacks of matrices; axes before the last two are broadcast."""
    if len(left) == 1 and len(right) == 1 and is_np_shape():
        return F.reshape(F.dot(a, b), shape=(), name=name)
    if len(left) <= 2 and len(right) <= 2:
        return F.dot(a, b, name=name)
    if len(right) <= 2:  # one matrix for all: the last axis is summed
        return F.dot(a, b, name=name)
    if len(left) == 1:
        made = multiply(F.reshape(a, shape=(1, -1)), b, (1, left[0]), right)
        return F.squeeze(made, axis=len(right) - 2, name=name)
    if len(right) == 1:
        made = multiply(a, F.reshape(b, shape=(-1, 1)), left, (right[0], 1))
        return F.squeeze(made, axis=len(left) - 1, name=name)
    if left[:-2] == right[:-2] and None not in left[1:-2]:
        return F.batch_dot(a, b, name=name)
    if None in left[:-2] or None in right[:-2]:
        return F._internal._npi_matmul(a, b, name=name)
    rank = max(len(left), len(right))
    front = np.broadcast_shapes(left[:-2], right[:-2])
    wide = [
        F.broadcast_to(with_rank(x, len(s), rank), shape=(*front, *s[-2:]))
        for x, s in ((a, left), (b, right))
    ]
    return F.batch_dot(*wide, name=name)


@imports("Det")
def det(node: OnnxNode, x: Value) -> Any:
    """Determinants."""
    made = F.linalg.det(x.symbol)
    return F.reshape(made, shape=()) if x.rank == 2 and is_np_shape() else made


@imports("Einsum")
def einsum(node: OnnxNode, *values: Value) -> Any:
    """Sums of products by letters; one or two operands become matrix products."""
    equation = node.get("equation").replace(" ", "")
    if "." in equation:
        return _general_einsum(node, equation, values)
    terms, _, out = equation.partition("->")
    parts = terms.split(",")
    if "->" not in equation:
        joined = "".join(parts)
        out = "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    if any(len(set(p)) != len(p) for p in parts) or len(parts) > 2:
        return _general_einsum(node, equation, values)
    if len(parts) == 1:
        return _reduced_to(values[0].symbol, parts[0], out)
    return _pair(values, parts, out)


def _general_einsum(node: OnnxNode, equation: str, values: tuple[Value, ...]) -> Any:
    symbols = [v.symbol for v in values]
    return F._internal._npi_einsum(*symbols, subscripts=equation, name=node.name)


def _reduced_to(x: Any, letters: str, out: str) -> Any:
    gone = tuple(i for i, c in enumerate(letters) if c not in out)
    if gone:
        x = F.sum(x, axis=gone)
        letters = "".join(c for c in letters if c in out)
    return F.transpose(x, axes=[letters.index(c) for c in out]) if letters != out else x


def _pair(values: tuple[Value, ...], parts: list[str], out: str) -> Any:
    """Move shared letters to the front, summed ones together, and multiply as matrices."""
    (a, b), (left, right) = values, parts
    sizes = dict(zip(left + right, (*a.sizes, *b.sizes), strict=True))
    lonely_a = "".join(c for c in left if c not in right and c not in out)
    lonely_b = "".join(c for c in right if c not in left and c not in out)
    x = _reduced_to(a.symbol, left, "".join(c for c in left if c not in lonely_a))
    y = _reduced_to(b.symbol, right, "".join(c for c in right if c not in lonely_b))
    left = "".join(c for c in left if c not in lonely_a)
    right = "".join(c for c in right if c not in lonely_b)
    batch = "".join(c for c in left if c in right and c in out)
    summed = "".join(c for c in left if c in right and c not in out)
    rows = "".join(c for c in left if c not in right)
    columns = "".join(c for c in right if c not in left)

    def grouped(z: Any, letters: str, *groups: str) -> Any:
        order = [letters.index(c) for c in "".join(groups)]
        moved = F.transpose(z, axes=order)
        return F.reshape(moved, shape=tuple(math.prod(sizes[c] for c in g) for g in groups))

    product = F.batch_dot(
        grouped(x, left, batch, rows, summed), grouped(y, right, batch, summed, columns)
    )
    letters = batch + rows + columns
    if not letters:
        return F.reshape(product, shape=() if is_np_shape() else (1,))
    split = F.reshape(product, shape=tuple(sizes[c] for c in letters))
    return F.transpose(split, axes=[letters.index(c) for c in out])


SOFTMAX_TYPES = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}


@imports("Attention")
def attention(node: OnnxNode, q: Value, k: Value, v: Value, *rest: Value | None) -> Any:
    """Scaled dot-product attention, with masks, caches, windows and groups of heads."""
    mask, past_key, past_value, lengths = [*rest, *[None] * 4][:4]
    optional = {"mask": mask, "past_key": past_key, "past_value": past_value, "lengths": lengths}
    used = {name: value.symbol for name, value in optional.items() if value is not None}
    wanted = max(i for i, name in enumerate(node.output_names, 1) if name)
    precision = node.get("softmax_precision")
    mode = node.get("qk_matmul_output_mode", 0)
    made = F._internal._onnx_attention(
        *(x.symbol for x in (q, k, v)),
        **used,
        given=",".join(used),
        num_outputs=wanted,
        q_num_heads=node.get("q_num_heads", 0),
        kv_num_heads=node.get("kv_num_heads", 0),
        scale=node.get("scale"),
        is_causal=bool(node.get("is_causal", 0)),
        softcap=node.get("softcap", 0.0),
        softmax_dtype=SOFTMAX_TYPES.get(precision),
        scores_mode=mode,
        left_window=node.get("left_window_size", -1),
        right_window=node.get("right_window_size", -1),
        name=node.name,
    )
    return made if wanted == 1 else [made[i] for i in range(wanted)]
