"""ONNX Runtime and OpenVINO as engines: ``net.hybridize(backend="openvino")``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ... import dtypes
from ...error import MXNetError
from ...graph.typed_graph import TypedGraph
from ...ndarray import NDArray
from ...runtime.array import wrap_plain
from ...runtime.backends import Run
from ...symbol import Symbol
from .export import build_model

__all__ = ["prepare_onnxruntime", "prepare_openvino"]


class _Exported(NamedTuple):
    """A model with parameters as constants, and the indices of its inputs in a feed."""

    content: bytes
    inputs: dict[str, int]


def prepare_onnxruntime(graph: TypedGraph, feed: Sequence[Tensor], data: Sequence[int]) -> Run:
    """Export a graph with its parameters and return an ONNX Runtime session that runs it."""
    runtime = _require("onnxruntime", "ONNX Runtime")
    exported = _export(graph, feed, data)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(
        exported.content, options, providers=["CPUExecutionProvider"]
    )
    inputs = [(i.name, exported.inputs[i.name]) for i in session.get_inputs()]

    def run(feed: Sequence[Tensor]) -> list[Tensor]:
        arrays = {name: _host_array(feed[i]) for name, i in inputs}
        return [torch.from_numpy(a).to(feed[0].device) for a in session.run(None, arrays)]

    return run


def prepare_openvino(graph: TypedGraph, feed: Sequence[Tensor], data: Sequence[int]) -> Run:
    """Export a graph with its parameters and return an OpenVINO request that runs it."""
    openvino = _require("openvino", "OpenVINO")
    exported = _export(graph, feed, data)
    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": torch.get_num_threads(),
    }
    core = openvino.Core()
    model = core.compile_model(core.read_model(exported.content), "CPU", options)
    request = model.create_infer_request()
    inputs = [(i.any_name, exported.inputs[i.any_name]) for i in model.inputs]
    count = len(model.outputs)

    def run(feed: Sequence[Tensor]) -> list[Tensor]:
        arrays = {name: _host_array(feed[i]) for name, i in inputs}
        output = request.infer(arrays, share_inputs=True)
        return [torch.from_numpy(output[i]).to(feed[0].device) for i in range(count)]

    return run


def _host_array(tensor: Tensor) -> Any:
    """Return a tensor as a NumPy array: these engines run on the CPU."""
    return tensor.detach().cpu().contiguous().numpy()


def _require(module: str, title: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MXNetError(
            f"backend={module!r} needs {title}. Install it with: pip install onnx {module}"
        ) from error


def _export(graph: TypedGraph, feed: Sequence[Tensor], data: Sequence[int]) -> _Exported:
    names = [n.name for n in graph.variables]
    indices = {names[i]: i for i in data}
    params = {
        n: wrap_plain(NDArray, t.detach())
        for n, t in zip(names, feed, strict=True)
        if n not in indices
    }
    shapes = {n: tuple(feed[i].shape) for n, i in indices.items()}
    types = {n: dtypes.to_numpy(feed[i].dtype) for n, i in indices.items()}
    # Files list parameters as inputs, as MXNet's do; constants let the engine fold them.
    model = build_model(Symbol(graph.heads), params, shapes, types, parameters_as_inputs=False)
    return _Exported(model.SerializeToString(), indices)
