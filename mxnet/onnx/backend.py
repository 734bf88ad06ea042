"""ONNX Runtime as an engine of hybridized blocks: ``net.hybridize(backend="onnxruntime")``."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import torch
from torch import Tensor

from .. import dtypes
from ..error import MXNetError
from ..executor.backends import Run, register_backend
from ..graph.typed import TypedGraph
from ..ndarray import NDArray
from ..symbol import Symbol
from .export import build_model

__all__ = ["prepare_onnxruntime"]


def prepare_onnxruntime(graph: TypedGraph, feed: Sequence[Tensor], data: Sequence[int]) -> Run:
    """Export a graph with its parameters and return a session that runs it."""
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise MXNetError(
            "backend='onnxruntime' needs ONNX Runtime. Install it with: "
            "pip install 'mxnext[onnxruntime]'"
        ) from error
    names = [n.name for n in graph.variables]
    changing = [names[i] for i in data]
    params = {n: NDArray(t.detach()) for n, t in zip(names, feed, strict=True) if n not in changing}
    shapes = {names[i]: tuple(feed[i].shape) for i in data}
    types = {names[i]: dtypes.to_numpy(feed[i].dtype) for i in data}
    model = build_model(Symbol(graph.heads), params, shapes, types)
    # Files list parameters as inputs, as MXNet's do; constants let the engine fold them.
    kept = [i for i in model.graph.input if i.name in shapes]
    del model.graph.input[:]
    model.graph.input.extend(kept)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = torch.get_num_threads()
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    read = {i.name for i in session.get_inputs()}
    given = [(name, i) for name, i in zip(changing, data, strict=True) if name in read]

    def run(feed: Sequence[Tensor]) -> list[Tensor]:
        arrays = {name: feed[i].detach().contiguous().numpy() for name, i in given}
        return [torch.from_numpy(a) for a in session.run(None, arrays)]

    return run


register_backend("onnxruntime", prepare_onnxruntime, prepares_quickly=True)
