"""`MXNetGraph`: MXNet's exporter for programs that want an ONNX graph instead of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....ndarray import NDArray
from ....symbol import Symbol
from ..export import DEFAULT_OPSET, build_model, load_parameters
from ..library import load_onnx

__all__ = ["MXNetGraph"]


class MXNetGraph:
    """Exports symbols as ONNX graphs, as `export_model` does to files.

    Examples
    --------
    >>> net = mx.sym.relu(mx.sym.var("x"))
    >>> graph = MXNetGraph().create_onnx_graph_proto(net, {}, [(2,)], "float32")
    >>> [node.op_type for node in graph.node]
    ['Relu']
    """

    def create_onnx_graph_proto(
        self,
        sym: Symbol,
        params: Any,
        in_shapes: Sequence[Sequence[int | str | None]] | None = None,
        in_types: Any = np.float32,
        verbose: bool = False,
        opset_version: int | None = None,
        dynamic: bool = True,
        dynamic_input_shapes: Sequence[Sequence[int | str | None]] | None = None,
        in_shape: Any = None,
        in_type: Any = None,
    ) -> Any:
        """Return the ONNX GraphProto of a symbol.

        Types may also be ONNX's numbers of them; `in_shape` and `in_type` are older names.
        """
        shapes = in_shapes if in_shapes is not None else in_shape
        types = in_types if in_type is None else in_type
        named = [_dtype(t) for t in (types if isinstance(types, list | tuple) else [types])]
        opset = DEFAULT_OPSET if opset_version is None else opset_version
        sizes = dynamic_input_shapes if dynamic else None
        return build_model(sym, load_parameters(params), shapes, named, sizes, opset).graph

    @staticmethod
    def split_params(
        sym: Symbol, params: Mapping[str, NDArray]
    ) -> tuple[dict[str, NDArray], dict[str, NDArray]]:
        arguments, states = sym.list_arguments(), sym.list_auxiliary_states()
        return (
            {name: params[name] for name in arguments if name in params},
            {name: params[name] for name in states if name in params},
        )

    @staticmethod
    def convert_weights_to_numpy(weights_dict: Mapping[str, NDArray]) -> dict[str, np.ndarray]:
        """Return parameters as NumPy arrays, without ``arg:`` and ``aux:``."""
        return {name: array.asnumpy() for name, array in load_parameters(weights_dict).items()}


def _dtype(dtype: Any) -> Any:
    if isinstance(dtype, int) and not isinstance(dtype, bool):
        return load_onnx().helper.tensor_dtype_to_np_dtype(dtype)
    return dtype
