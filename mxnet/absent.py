"""Says what to use instead of modules that MXNet had and this package does not have.

``from mxnet import notebook`` then ends in a sentence, not in a bare ImportError. Modules that
exist are found before this table is asked.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import NoReturn

INSTEAD = {
    "_ctypes": "There is no C library behind this package; use the public functions of mx.nd.",
    "_cy3": "There is no C library behind this package; use the public functions of mx.nd.",
    "_ffi": "There is no C library behind this package; use the public functions of mx.np.",
    "api": "It was internal; use the functions of mx.np and mx.npx.",
    "contrib.tensorrt": "Export the network with mx.onnx.export_model and run it in TensorRT.",
    "device": "It belongs to MXNet 2; use mx.cpu(), mx.gpu() and mx.Context.",
    "eia": "Amazon's Elastic Inference has been switched off; use mx.gpu() or mx.cpu().",
    "gluon.metric": "It belongs to MXNet 2; use mx.metric.",
    "gluon.probability": "It belongs to MXNet 2; use mx.np.random, or torch.distributions.",
    "ndarray_doc": "It held texts for the documentation; use help(mx.nd.X).",
    "notebook": "Use mx.progress, mx.viz.plot_history and the loggers of mx.tracking.",
    "numpy_op_fallback": "Write a mx.operator.CustomOp; mx.np falls back to NumPy by itself.",
    "symbol_doc": "It held texts for the documentation; use help(mx.sym.X).",
    "th": "Lua Torch is not supported; use PyTorch: x.to_torch() and mx.nd.from_torch(t).",
    "torch": "Lua Torch is not supported; use PyTorch: x.to_torch() and mx.nd.from_torch(t).",
    "tvmop": "Operators of TVM are not supported; use the functions of mx.np and mx.npx.",
}


class _Explaining(MetaPathFinder):
    """The last finder to be asked: it knows the modules that are absent."""

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package == __package__ and name in INSTEAD:
            explain(name)
        return None


def explain(name: str) -> NoReturn:
    """Raise an ImportError that says what to use instead of a module.

    >>> explain("eia")
    Traceback (most recent call last):
    ImportError: mxnet.eia is not in MXNext. Amazon's Elastic Inference has been switched off; ...
    """
    raise ImportError(
        f"{__package__}.{name} is not in MXNext. {INSTEAD[name]}", name=f"{__package__}.{name}"
    )


sys.meta_path.append(_Explaining())
