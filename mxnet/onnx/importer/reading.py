"""Reads ONNX files. A file is not trusted: nothing in it runs, and sizes are checked first."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from ...error import FormatError, MXNetError
from ..library import load_onnx
from .isolation import run_isolated

__all__ = ["infer_shapes", "read_model", "tensor_to_numpy"]

MAX_FILE = 2**31 - 1
MAX_NODES = 1_000_000
MAX_DEPTH = 16
# Bits of one element, by ONNX's number of the type, where bytes do not say it.
STRING = 8


def read_model(source: Any) -> Any:
    """Return a checked ModelProto from a path or from bytes.

    Damaged files, files that point at other files and unknown types are errors.
    """
    onnx = load_onnx()
    name, data = _content(source)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf's own class, which differs between its versions
        raise FormatError(f"{name} is not an ONNX file: {error}") from None
    if not model.HasField("graph") or not model.opset_import:
        raise FormatError(f"{name} is not an ONNX file: it has no graph or no opset.")
    _check_graph(model.graph, name, 0)

    def check() -> bytes:
        onnx.checker.check_model(data)
        return b""

    run_isolated(check, name, len(data))
    return model


def infer_shapes(model: Any) -> Any:
    """Return the model with shapes and types of its values, as far as ONNX infers them."""
    onnx = load_onnx()

    def infer() -> bytes:
        return onnx.shape_inference.infer_shapes(model, data_prop=True).SerializeToString()

    inferred = onnx.ModelProto()
    try:
        inferred.ParseFromString(run_isolated(infer, "the model", model.ByteSize()))
    except FormatError:  # its failures must not be ours: rows say what they need
        return model
    return inferred


def _content(source: Any) -> tuple[str, bytes]:
    if isinstance(source, bytes):
        return "<bytes>", source
    if not isinstance(source, str | os.PathLike):
        raise MXNetError(f"model_file must be a path or bytes, got {type(source)}.")
    path = Path(source)
    if not path.is_file():
        raise MXNetError(f"ONNX file {str(path)!r} does not exist.")
    size = path.stat().st_size
    if size > MAX_FILE:
        raise FormatError(f"{path} has {size} bytes; an ONNX file holds at most {MAX_FILE}.")
    return str(path), path.read_bytes()


def _check_graph(graph: Any, name: str, depth: int) -> None:
    """Refuse what would make reading dangerous before anything is allocated."""
    if depth > MAX_DEPTH:
        raise FormatError(f"{name}: graphs are nested deeper than {MAX_DEPTH}.")
    if len(graph.node) > MAX_NODES:
        raise FormatError(f"{name}: more than {MAX_NODES} nodes.")
    for tensor in graph.initializer:
        _check_tensor(tensor, name)
    if graph.sparse_initializer:
        raise FormatError(f"{name}: sparse initializers are not supported.")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                _check_tensor(attribute.t, name)
            if attribute.HasField("g"):
                _check_graph(attribute.g, name, depth + 1)


def _check_tensor(tensor: Any, name: str) -> None:
    """Compare the size that a tensor claims with the bytes that it has."""
    onnx = load_onnx()
    what = f"{name}: tensor {tensor.name!r}"
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise FormatError(f"{what} is stored in another file; such files are not read.")
    if tensor.data_type not in _known_types():
        raise FormatError(f"{what} has the unknown type {tensor.data_type}.")
    if any(n < 0 for n in tensor.dims):
        raise FormatError(f"{what} has a negative size: {list(tensor.dims)}.")
    count = 1
    for size in tensor.dims:
        count *= size
    if tensor.data_type == STRING:
        found = len(tensor.string_data)
    elif tensor.HasField("raw_data"):
        bits = _bits(tensor.data_type)
        found = len(tensor.raw_data) * 8 / bits  # a part of an element is damage as well
        if bits < 8:  # several elements share a byte, the last of which may be half empty
            found = count if -(-count * bits // 8) == len(tensor.raw_data) else found
    else:
        found = _listed(tensor)
    if found != count:
        raise FormatError(f"{what} claims {list(tensor.dims)}, but holds {found:g} elements.")


def _known_types() -> set[int]:
    return set(load_onnx().TensorProto.DataType.values()) - {0}


def _bits(data_type: int) -> int:
    onnx = load_onnx()
    name = onnx.TensorProto.DataType.Name(data_type)
    if name in ("INT4", "UINT4", "FLOAT4E2M1"):
        return 4
    if name in ("INT2", "UINT2"):
        return 2
    return onnx.helper.tensor_dtype_to_np_dtype(data_type).itemsize * 8


def _listed(tensor: Any) -> int:
    """Return how many elements the typed lists of a tensor hold."""
    name = load_onnx().TensorProto.DataType.Name(tensor.data_type)
    lists = (tensor.float_data, tensor.int32_data, tensor.int64_data, tensor.double_data)
    total = sum(len(one) for one in (*lists, tensor.uint64_data))
    if name.startswith("COMPLEX"):
        return total // 2
    if name in ("INT4", "UINT4", "FLOAT4E2M1", "INT2", "UINT2"):
        count = 1
        for size in tensor.dims:
            count *= size
        return min(count, total * 4)
    return total


def tensor_to_numpy(tensor: Any) -> np.ndarray:
    """Return the array of a checked tensor."""
    return load_onnx().numpy_helper.to_array(tensor)
