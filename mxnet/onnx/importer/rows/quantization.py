"""Import rows of quantization: values are computed in floats, as files with QDQ pairs mean it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value
from .elementwise import round_even

LIMITS = {"int8": (-128, 127), "uint8": (0, 255)}


def _shaped(node: OnnxNode, value: Value, x: Value) -> Any:
    """Return a scale or zero point with the axes to meet the data, as float32."""
    array = node.constant(value, "scale and zero point").astype(np.float32)
    shape = [1] * max(x.rank, 1)
    if array.size > 1:
        if node.get("block_size", 0):
            raise node.unsupported("in blocks has no row.")
        shape[node.get("axis", 1) % x.rank] = array.size
    return node.importer.constant(array.reshape(shape), f"{node.name}_{value.name}")


@imports("DequantizeLinear")
def dequantize(node: OnnxNode, x: Value, scale: Value, zero: Value | None = None) -> Any:
    """``(x - zero) scale``."""
    if scale.dtype != np.float32:
        raise node.unsupported(f"with a scale of {scale.dtype} has no row.")
    made = F.cast(x.symbol, dtype="float32")
    if zero is not None:
        made = F.broadcast_sub(made, _shaped(node, zero, x))
    return F.broadcast_mul(made, _shaped(node, scale, x), name=node.name)


@imports("QuantizeLinear")
def quantize(node: OnnxNode, x: Value, scale: Value, zero: Value | None = None) -> Any:
    """``round(x / scale) + zero``, limited to the type."""
    dtype = node.output_dtype()
    name = dtype.name if dtype is not None else "uint8"
    if name not in LIMITS or scale.dtype != np.float32:
        raise node.unsupported(f"to {name} has no row.")
    ratio = F.broadcast_div(x.symbol, _shaped(node, scale, x))
    made = round_even(node, Value("ratio", ratio, shape=x.shape, dtype=np.dtype("float32")))
    if zero is not None:
        made = F.broadcast_add(made, _shaped(node, zero, x))
    low, high = LIMITS[name]
    return F.cast(F.clip(made, a_min=low, a_max=high), dtype=name)
