"""Import of ONNX files: `import_model`, `import_to_gluon` and `get_model_metadata`."""

from __future__ import annotations

import os
from typing import Any

from ....context import Context
from ....ndarray import NDArray
from ....symbol import Symbol
from .reading import read_model
from .walk import Importer

__all__ = ["get_model_metadata", "import_model", "import_to_gluon"]

Source = str | os.PathLike[str] | bytes


def import_model(model_file: Source) -> tuple[Symbol, dict[str, NDArray], dict[str, NDArray]]:
    """Import an ONNX file as a symbol and its parameters.

    Parameters
    ----------
    model_file : str or bytes
        The path of the file, or its content.

    Returns
    -------
    sym : Symbol
    arg_params, aux_params : dict of str to NDArray
        The parameters, ready for `Module.set_params` or `Symbol.bind`.

    Examples
    --------
    >>> import os, tempfile
    >>> target = os.path.join(tempfile.mkdtemp(), "fc.onnx")
    >>> x = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    >>> params = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros(2)}
    >>> path = mx.onnx.export_model(x, params, [(1, 3)], onnx_file_path=target)
    >>> sym, arg_params, aux_params = mx.contrib.onnx.import_model(path)
    >>> sorted(arg_params)
    ['fc_bias', 'fc_weight']
    """
    return Importer(read_model(model_file)).run()


def import_to_gluon(model_file: Source, ctx: Context | None = None) -> Any:
    """Import an ONNX file as a `SymbolBlock` with its parameters."""
    from ....gluon import SymbolBlock
    from ....symbol import Variable

    importer = Importer(read_model(model_file))
    symbol, arg_params, aux_params = importer.run()
    block = SymbolBlock(symbol, [Variable(name) for name in importer.inputs])
    stored = {**arg_params, **aux_params}
    for name, parameter in block.collect_params().items():
        parameter._load_init(stored[name], ctx, cast_dtype=True, dtype_source="saved")
    return block


def get_model_metadata(model_file: Source) -> dict[str, list[tuple[str, tuple]]]:
    """Return the names and shapes of the inputs and outputs of an ONNX file.

    Parameters
    ----------
    model_file
        The file.

    Returns
    -------
    dict
        ``{"input_tensor_data": [(name, shape)], "output_tensor_data": [(name, shape)]}``;
        a size that is not known is 0.

    >>> net = mx.sym.relu(mx.sym.var("data"))
    >>> _ = mx.onnx.export_model(net, {}, [(1, 3)], np.float32, "net.onnx")
    >>> mx.contrib.onnx.get_model_metadata("net.onnx")["input_tensor_data"]
    [('data', (1, 3))]
    """
    graph = read_model(model_file).graph
    weights = {tensor.name for tensor in graph.initializer}

    def describe(infos: Any) -> list[tuple[str, tuple]]:
        return [
            (i.name, tuple(d.dim_value for d in i.type.tensor_type.shape.dim))
            for i in infos
            if i.name not in weights
        ]

    return {
        "input_tensor_data": describe(graph.input),
        "output_tensor_data": describe(graph.output),
    }
