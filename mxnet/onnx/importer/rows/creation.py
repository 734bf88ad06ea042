"""Import rows of operators that make arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...library import load_onnx
from ..functions import F
from ..reading import tensor_to_numpy
from ..table import imports
from ..value import OnnxNode, Value

MAX_ELEMENTS = 1 << 28


@imports("Constant")
def constant(node: OnnxNode) -> Any:
    """An array that is written in the file."""
    if node.get("value") is not None:
        return tensor_to_numpy(node.get("value"))
    for key, dtype in (
        ("value_float", np.float32),
        ("value_int", np.int64),
        ("value_floats", np.float32),
        ("value_ints", np.int64),
    ):
        if node.get(key) is not None:
            return np.array(node.get(key), dtype=dtype)
    raise node.unsupported("holds text or a sparse tensor.")


@imports("ConstantOfShape")
def constant_of_shape(node: OnnxNode, shape: Value) -> Any:
    """One number everywhere."""
    if shape.constant is None:
        return _of_runtime_shape(node, shape)
    sizes = tuple(int(n) for n in node.constant(shape, "shape"))
    if math.prod(sizes) > MAX_ELEMENTS:
        raise node.unsupported(f"makes {sizes}, more than {MAX_ELEMENTS} elements.")
    value = node.get("value")
    fill = np.zeros(1, np.float32) if value is None else tensor_to_numpy(value)
    if not sizes:
        return fill.reshape(())
    if fill.dtype.kind == "b":
        made = F.full(sizes, float(fill.item()), dtype="int32")
        return F.cast(made, dtype="bool", name=node.name)
    return F.full(sizes, fill.item(), dtype=fill.dtype.name, name=node.name)


def _of_runtime_shape(node: OnnxNode, shape: Value) -> Any:
    value = node.get("value")
    fill = np.zeros(1, np.float32) if value is None else tensor_to_numpy(value)
    return F._internal._onnx_constant_of_shape(
        F.cast(shape.symbol, dtype="int64"),
        value=float(fill.item()),
        dtype=fill.dtype.name,
        name=node.name,
    )


@imports("Range")
def arange(node: OnnxNode, start: Value, limit: Value, delta: Value) -> Any:
    """Numbers at equal distances."""
    if any(v.constant is None for v in (start, limit, delta)):
        ends = [F.reshape(v.symbol, shape=(1,)) for v in (start, limit, delta)]
        return F._internal._onnx_range(*ends, name=node.name)
    first, last, step = (
        node.constant(v, k).item()
        for v, k in ((start, "start"), (limit, "limit"), (delta, "delta"))
    )
    if step == 0 or (last - first) / step > MAX_ELEMENTS:
        raise node.unsupported(f"goes from {first} to {last} by {step}: too many elements.")
    return np.arange(first, last, step, dtype=start.dtype)


@imports("EyeLike")
def eye_like(node: OnnxNode, x: Value) -> Any:
    """Ones on a diagonal."""
    dtype = node.output_dtype() or x.dtype
    if math.prod(x.sizes) > MAX_ELEMENTS:
        raise node.unsupported(f"makes {x.sizes}, more than {MAX_ELEMENTS} elements.")
    return np.eye(*x.sizes, k=node.get("k", 0)).astype(dtype)


def _dtype(node: OnnxNode, like: Value | None = None) -> str:
    code = node.get("dtype")
    if code is not None:
        return load_onnx().helper.tensor_dtype_to_np_dtype(code).name
    return like.dtype.name if like is not None else "float32"


@imports("RandomUniform", "RandomUniformLike")
def random_uniform(node: OnnxNode, like: Value | None = None) -> Any:
    """Random numbers, evenly distributed."""
    shape = like.sizes if like is not None else tuple(node.get("shape"))
    return F.random.uniform(
        node.get("low", 0.0), node.get("high", 1.0), shape=shape, dtype=_dtype(node, like)
    )


@imports("RandomNormal", "RandomNormalLike")
def random_normal(node: OnnxNode, like: Value | None = None) -> Any:
    """Random numbers, normally distributed."""
    shape = like.sizes if like is not None else tuple(node.get("shape"))
    return F.random.normal(
        node.get("mean", 0.0), node.get("scale", 1.0), shape=shape, dtype=_dtype(node, like)
    )


@imports("Multinomial")
def multinomial(node: OnnxNode, x: Value) -> Any:
    """Random classes by the logarithms of their shares."""
    code = node.get("dtype", 6)
    dtype = load_onnx().helper.tensor_dtype_to_np_dtype(code).name
    count = node.get("sample_size", 1)
    return F.sample_multinomial(F.softmax(x.symbol), shape=(count,), dtype=dtype)
