"""Rows of matrix products."""

from __future__ import annotations

import numpy as np
import torch

from ..builder import UNKNOWN, Builder, Call, is_float
from ..table import row


@row("FullyConnected")
def fully_connected(g: Builder, call: Call, x: str, weight: str, bias: str | None = None) -> str:
    """``y = x W^T + b``; data of more than two axes is flattened unless specified otherwise."""
    flatten = call.attrs["flatten"]
    if flatten and call.ndim != 2:
        x = g.Flatten(x, axis=1)
    if flatten or call.ndim == 2:
        return g.Gemm(x, weight, *([bias] if bias else []), transB=1)
    product = g.MatMul(x, g.Transpose(weight, perm=[1, 0]))
    return g.Add(product, bias) if bias else product


def swap_last(g: Builder, x: str, rank: int) -> str:
    """Transpose the matrices of the last two axes."""
    return g.Transpose(x, perm=[*range(rank - 2), rank - 1, rank - 2])


@row("dot")
def dot(g: Builder, call: Call, a: str, b: str) -> str:
    """Sum over the last axis of one and the first of the other."""
    left, right = list(call.shapes[0]), list(call.shapes[1])
    turn_a = call.attrs["transpose_a"] and len(left) > 1
    turn_b = call.attrs["transpose_b"] and len(right) > 1
    if turn_a:
        a = g.Transpose(a, perm=[*range(1, len(left)), 0])
        left = [*left[1:], left[0]]
    if turn_b:
        b = g.Transpose(b, perm=[len(right) - 1, *range(len(right) - 1)])
        right = [right[-1], *right[:-1]]
    if len(right) > 2:
        b = g.reshape(b, [right[0] if right[0] != UNKNOWN else 0, -1])
    if len(right) == 1 and len(left) > 1:  # runtimes fuse a transposition with vectors wrongly
        return g.squeeze(g.MatMul(a, g.unsqueeze(b, 1)), len(left) - 1)
    product = g.MatMul(a, b)
    if len(right) > 2:
        product = g.reshape_to(call, product, (*left[:-1], -1), call.out_shapes[0])
    return g.reshape(product, [1]) if len(left) == 1 and len(right) == 1 else product


@row("batch_dot")
def batch_dot(g: Builder, call: Call, a: str, b: str) -> str:
    """Multiply matrices pairwise."""
    if call.attrs["transpose_a"]:
        a = swap_last(g, a, call.ndim)
    if call.attrs["transpose_b"]:
        b = swap_last(g, b, len(call.shapes[1]))
    return g.MatMul(a, b)


def _product(g: Builder, call: Call, a: str, b: str) -> str:
    rank = call.ndim
    at = call.attrs["axis"] % rank
    order = [i for i in range(rank) if i not in (at, rank - 1)] + [at, rank - 1]
    a, b = g.transpose(a, *order), g.transpose(b, *order)
    if call.attrs["transpose_a"]:
        a = swap_last(g, a, rank)
    if call.attrs["transpose_b"]:
        b = swap_last(g, b, rank)
    made = g.Mul(g.MatMul(a, b), g.scalar(call.attrs["alpha"], call.dtype))
    return g.transpose(made, *(int(i) for i in np.argsort(order)))


@row("_linalg_gemm2")
def gemm2(g: Builder, call: Call, a: str, b: str) -> str:
    """``alpha A B``."""
    return _product(g, call, a, b)


@row("_linalg_gemm")
def gemm(g: Builder, call: Call, a: str, b: str, c: str) -> str:
    """``alpha A B + beta C``."""
    scaled = g.Mul(c, g.scalar(call.attrs["beta"], call.dtype))
    return g.Add(_product(g, call, a, b), scaled)


@row("_linalg_syrk")
def syrk(g: Builder, call: Call, a: str) -> str:
    """``alpha A A^T`` or ``alpha A^T A``."""
    turned = swap_last(g, a, call.ndim)
    pair = (turned, a) if call.attrs["transpose"] else (a, turned)
    return g.Mul(g.MatMul(*pair), g.scalar(call.attrs["alpha"], call.dtype))


@row("_linalg_det")
def det(g: Builder, call: Call, a: str) -> str:
    """Determinants."""
    found = g.Det(a)
    return g.reshape(found, [1]) if call.out_shapes[0] == (1,) and call.ndim == 2 else found


@row("_linalg_sumlogdiag")
def sumlogdiag(g: Builder, call: Call, a: str) -> str:
    """Sum of the logarithms of the diagonal."""
    size = call.shape[-1]
    eye = g.array(np.eye(size, dtype=bool))
    logs = g.Log(g.Where(eye, a, g.scalar(1, call.dtype)))
    made = g.reduce("ReduceSum", logs, [call.ndim - 2, call.ndim - 1], False)
    return g.reshape(made, [1]) if call.ndim == 2 else made


@row("khatri_rao")
def khatri_rao(g: Builder, call: Call, *xs: str) -> str:
    """Kronecker products of columns."""
    columns = call.shape[1]
    made, rows = xs[0], call.shape[0]
    for x, shape in zip(xs[1:], call.shapes[1:], strict=True):
        made = g.Mul(g.reshape(made, [rows, 1, columns]), g.reshape(x, [1, *shape]))
        rows *= shape[0]
        made = g.reshape(made, [rows, columns])
    return g.Identity(made) if len(xs) == 1 else made


@row("_contrib_allclose")
def allclose(g: Builder, call: Call, a: str, b: str) -> str:
    """1 if all elements are close."""
    rtol, atol = (g.scalar(call.attrs[k], call.dtype) for k in ("rtol", "atol"))
    limit = g.Add(atol, g.Mul(rtol, g.Abs(b)))
    near = g.Or(g.LessOrEqual(g.Abs(g.Sub(a, b)), limit), g.Equal(a, b))
    if call.attrs["equal_nan"] and is_float(call.dtype):
        near = g.Or(near, g.And(g.IsNaN(a), g.IsNaN(b)))
    number = g.cast(near, torch.bool, torch.float32)
    least = g.reduce("ReduceMin", number, None, False)
    made = g.reshape(least, call.out_shapes[0])
    return g.cast(made, torch.float32, call.out_dtypes[0])
