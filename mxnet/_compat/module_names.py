"""Aliases of modules, and errors for absent modules.

``import mxnet.onnx`` imports `mxnet.interop.onnx`, including submodules. Importing an absent module
of MXNet raises an ImportError with a replacement.
"""

from __future__ import annotations

import importlib
import sys
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import CodeType, ModuleType
from typing import NoReturn

PACKAGE = "mxnet"
# Public name -> actual module.
ALIASES = {
    "_numpy_op_doc": "_compat._numpy_op_doc",
    "checkpoint": "formats.checkpoints",
    "convert": "interop",
    "distributed": "parallel",
    "engine": "_compat.engine",
    "executor_manager": "_compat.executor_manager",
    "launch": "parallel.launch",
    "library": "_compat.library",
    "log": "_compat.log",
    "memonger": "_compat.memonger",
    "misc": "_compat.misc",
    "ndarray_doc": "_compat.ndarray_doc",
    "numpy_dispatch_protocol": "_compat.numpy_dispatch_protocol",
    "numpy_op_signature": "_compat.numpy_op_signature",
    "onnx": "interop.onnx",
    "rtc": "_compat.rtc",
    "serving": "interop.serving",
    "symbol_doc": "_compat.symbol_doc",
    "tools": "_compat.tools",
    "tools.im2rec": "io.im2rec",
    "tracking": "visualization.tracking",
}
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
    "notebook": "Use mx.progress, mx.viz.plot_history and the loggers of mx.tracking.",
    "numpy_op_fallback": "Write a mx.operator.CustomOp; mx.np falls back to NumPy by itself.",
    "th": "Lua Torch is not supported; use PyTorch: x.to_torch() and mx.nd.from_torch(t).",
    "torch": "Lua Torch is not supported; use PyTorch: x.to_torch() and mx.nd.from_torch(t).",
    "tvmop": "Operators of TVM are not supported; use the functions of mx.np and mx.npx.",
}


def find_alias(name: str) -> str | None:
    """Return the actual name of an aliased module, or None.

    >>> find_alias("onnx.mx2onnx"), find_alias("gluon")
    ('mxnet.interop.onnx.mx2onnx', None)
    """
    head = name
    while head:
        if head in ALIASES:
            return f"{PACKAGE}.{ALIASES[head]}{name[len(head) :]}"
        head = head.rpartition(".")[0]
    return None


def explain(name: str) -> NoReturn:
    """Raise an ImportError with the replacement of a module.

    >>> explain("eia")
    Traceback (most recent call last):
    ImportError: mxnet.eia is not in MXNext. Amazon's Elastic Inference has been switched off; ...
    """
    full = f"{PACKAGE}.{name}"
    raise ImportError(f"{full} is not in MXNext. {INSTEAD[name]}", name=full)


class _ModuleNames(MetaPathFinder, InspectLoader):
    """Finds aliased modules, and raises for absent ones."""

    def find_spec(
        self, fullname: str, path: object = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.partition(".")
        if package != PACKAGE:
            return None
        if name in INSTEAD:
            explain(name)
        real = find_alias(name)
        spec = None if real is None else find_spec(real)
        if spec is None:
            return None
        is_package = spec.submodule_search_locations is not None
        return ModuleSpec(fullname, self, origin=spec.origin, is_package=is_package)

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = importlib.import_module(self._real_name(module.__name__))

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the module, for ``python -m``."""
        loader, name = self._find_loader(fullname)
        return loader.get_code(name)

    def get_source(self, fullname: str) -> str | None:
        loader, name = self._find_loader(fullname)
        return loader.get_source(name)

    def _find_loader(self, fullname: str) -> tuple[InspectLoader, str]:
        """Return the loader and the name of an aliased module."""
        spec = find_spec(self._real_name(fullname))
        assert spec is not None and isinstance(spec.loader, InspectLoader)
        return spec.loader, spec.name

    def _real_name(self, fullname: str) -> str:
        real = find_alias(fullname.partition(".")[2])
        assert real is not None  # as `find_spec` checked
        return real


def install() -> None:
    """Install the finder before those that search folders."""
    sys.meta_path.insert(0, _ModuleNames())
