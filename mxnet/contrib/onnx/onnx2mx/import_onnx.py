"""`GraphProto`: MXNet's importer for programs that hold an ONNX graph instead of a file."""

from __future__ import annotations

from typing import Any

from ....context import Context
from ....interop.onnx.importer import get_model_metadata, import_model, import_to_gluon
from ....interop.onnx.importer.value import importers
from ....interop.onnx.library import load_onnx
from ....ndarray import NDArray
from ....symbol import Symbol

__all__ = ["GraphProto", "convert_map"]

# The ONNX operators that can be imported, with the functions that build them.
convert_map = importers()


class GraphProto:
    """Imports graphs of ONNX models, as `import_model` does with files.

    Examples
    --------
    >>> from onnx import TensorProto, helper
    >>> info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [2]) for n in "xy"]
    >>> graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", *zip(info))
    >>> sym, arg_params, aux_params = GraphProto().from_onnx(graph, opset_version=13)
    >>> sym.list_arguments()
    ['x']
    """

    def from_onnx(
        self, graph: Any, opset_version: int
    ) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
        """Return the symbol, its arguments and its auxiliary states."""
        return import_model(_file(graph, opset_version))

    def get_graph_metadata(self, graph: Any) -> dict[str, list[tuple[str, tuple]]]:
        """Return the names and shapes of inputs and outputs."""
        newest = load_onnx().defs.onnx_opset_version()
        return get_model_metadata(_file(graph, newest))

    def graph_to_gluon(self, graph: Any, ctx: Context | None, opset_version: int) -> Any:
        """Return a `SymbolBlock` with its parameters."""
        return import_to_gluon(_file(graph, opset_version), ctx)


def _file(graph: Any, opset_version: int) -> bytes:
    helper = load_onnx().helper
    opsets = [helper.make_opsetid("", opset_version)]
    return helper.make_model(graph, opset_imports=opsets).SerializeToString()
