"""Import rows of Fourier transforms, rotary positions and bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...library import load_onnx
from ..functions import F
from ..table import imports
from ..value import OnnxNode, Value

internal: Any = F._internal


@imports("DFT")
def dft(node: OnnxNode, x: Value, length: Value | None = None, axis: Value | None = None) -> Any:
    """Discrete Fourier transform."""
    if node.opset >= 20:
        at = -2 if axis is None else int(node.constant(axis, "axis").item())
    else:
        at = node.get("axis", 1)
    count = None if length is None else int(node.constant(length, "dft_length").item())
    return internal._onnx_dft(
        x.symbol,
        axis=at,
        length=count,
        inverse=bool(node.get("inverse", 0)),
        onesided=bool(node.get("onesided", 0)),
        name=node.name,
    )


@imports("STFT")
def stft(
    node: OnnxNode,
    x: Value,
    step: Value,
    window: Value | None = None,
    length: Value | None = None,
) -> Any:
    """Fourier transforms of frames."""
    if length is not None:
        count = int(node.constant(length, "frame_length").item())
    else:
        count = window.sizes[0] if window is not None else x.sizes[1]
    inputs = [x.symbol] + ([window.symbol] if window is not None else [])
    return internal._onnx_stft(
        *inputs,
        frame_step=int(node.constant(step, "frame_step").item()),
        frame_length=count,
        onesided=bool(node.get("onesided", 1)),
        has_window=window is not None,
        name=node.name,
    )


@imports("BitShift")
def bit_shift(node: OnnxNode, x: Value, count: Value) -> Any:
    """Shift bits to the left or right."""
    return internal._onnx_bit_shift(
        x.symbol, count.symbol, direction=node.get("direction"), name=node.name
    )


@imports("BitCast")
def bit_cast(node: OnnxNode, x: Value) -> Any:
    """Read the bits as another type."""
    target = load_onnx().helper.tensor_dtype_to_np_dtype(node.get("to"))
    if np.dtype(target).itemsize != x.dtype.itemsize:
        raise node.unsupported(f"from {x.dtype} to {target} changes the size.")
    return internal._onnx_bit_cast(x.symbol, dtype=target.name, name=node.name)


@imports("RotaryEmbedding")
def rotary_embedding(
    node: OnnxNode, x: Value, cos: Value, sin: Value, positions: Value | None = None
) -> Any:
    """Rotate pairs of features by the position."""
    inputs = [x.symbol, cos.symbol, sin.symbol]
    inputs += [positions.symbol] if positions is not None else []
    return internal._onnx_rotary_embedding(
        *inputs,
        num_heads=node.get("num_heads", 0),
        rotary_dim=node.get("rotary_embedding_dim", 0),
        interleaved=bool(node.get("interleaved", 0)),
        has_positions=positions is not None,
        name=node.name,
    )


@imports("TensorScatter")
def tensor_scatter(node: OnnxNode, cache: Value, update: Value, at: Value | None = None) -> Any:
    """Write a piece into a cache."""
    starts = (
        at.symbol
        if at is not None
        else node.importer.constant(np.zeros(cache.sizes[0], np.int64), f"{node.name}_start")
    )
    return internal._onnx_tensor_scatter(
        cache.symbol,
        update.symbol,
        starts,
        axis=node.get("axis", -2),
        mode=node.get("mode", "linear"),
        name=node.name,
    )
