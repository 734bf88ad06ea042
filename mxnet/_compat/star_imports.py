"""The names that ``from mxnet.X import *`` imports.

MXNet's modules have no ``__all__``, so a star import includes everything they import: ``np``,
``logging``, ``NDArray``. Old programs rely on it, and on attributes such as ``mx.metric.numpy``.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from .module_names import find_alias

# Names that are not modules of the same name, and their origin.
SOURCES = {
    "BASE_ESTIMATOR": "builtins:object",
    "CFUNCTYPE": "ctypes:CFUNCTYPE",
    "Context": "mxnet.context:Context",
    "DataBatch": "mxnet.io:DataBatch",
    "DataDesc": "mxnet.io:DataDesc",
    "DataIter": "mxnet.io:DataIter",
    "DataParallelExecutorManager": "mxnet.executor_manager:DataParallelExecutorManager",
    "InitDesc": "mxnet.initializer:InitDesc",
    "Lock": "threading:Lock",
    "LogValidationMetricsCallback": "mxnet.callback:LogValidationMetricsCallback",
    "NDArray": "mxnet.ndarray:NDArray",
    "Number": "numbers:Number",
    "OrderedDict": "collections:OrderedDict",
    "Structure": "ctypes:Structure",
    "Symbol": "mxnet.symbol:Symbol",
    "Uniform": "mxnet.initializer:Uniform",
    "array": "array:array",
    "cos": "math:cos",
    "cpu": "mxnet.context:cpu",
    "ctx": "mxnet.context",
    "current_process": "multiprocessing:current_process",
    "defaultdict": "collections:defaultdict",
    "get_updater": "mxnet.optimizer:get_updater",
    "init": "mxnet.initializer",
    "is_np_array": "mxnet.util:is_np_array",
    "kvs": "mxnet.kvstore",
    "load": "mxnet.ndarray:load",
    "load_checkpoint": "mxnet.formats.model_files:load_checkpoint",
    "namedtuple": "collections:namedtuple",
    "nd": "mxnet.ndarray",
    "ndarray": "mxnet.ndarray",
    "np": "numpy",
    "opt": "mxnet.optimizer",
    "pi": "math:pi",
    "py_array": "array:array",
    "save_checkpoint": "mxnet.formats.model_files:save_checkpoint",
    "sqrt": "math:sqrt",
    "sym": "mxnet.symbol",
    "zeros": "mxnet.ndarray:zeros",
    "zeros_like": "mxnet.ndarray:zeros_like",
    **{name: f"ctypes:{name}" for name in ("c_bool", "c_char", "c_char_p", "c_int", "c_void_p")},
    **{name: f"ctypes:{name}" for name in ("POINTER", "cast", "pointer")},
    **{
        name: f"mxnet.base:{name}"
        for name in (
            *("MXCallbackList", "NDArrayHandle", "OpHandle", "SymbolHandle", "ExecutorHandle"),
            *("KVStoreHandle", "ProfileHandle", "RecordIOHandle", "c_array", "c_array_buf"),
            *("c_handle_array", "c_str", "c_str_array", "check_call", "classproperty"),
            *("ctypes2numpy_shared", "integer_types", "mx_float", "mx_int", "mx_real_t", "mx_uint"),
            *("numeric_types", "py_str", "string_types", "with_metaclass"),
        )
    },
    **{
        name: f"mxnet.image.image:{name}"
        for name in (
            *("Augmenter", "CastAug", "ColorJitterAug", "ColorNormalizeAug", "ForceResizeAug"),
            *("HueJitterAug", "ImageIter", "LightingAug", "RandomGrayAug", "RandomOrderAug"),
            *("ResizeAug", "copyMakeBorder", "fixed_crop"),
        )
    },
    **{
        name: f"mxnet.{name}"
        for name in ("context", "io", "metric", "recordio", "registry", "symbol")
    },
}
_C = "check_call ctypes"
_IMAGE = "io is_np_array json logging nd np numeric_types random warnings"
_RNN = "functools init ndarray numeric_types string_types symbol warnings"
_RNN_IO = "DataBatch DataDesc DataIter bisect ndarray np random"

# Module -> names, as MXNet 1.9.1 has them.
STARS = {
    "attribute": "classproperty defaultdict string_types threading warnings with_metaclass",
    "autograd": f"CFUNCTYPE Lock MXCallbackList NDArray NDArrayHandle POINTER Symbol SymbolHandle "
    f"array c_array c_array_buf c_handle_array c_int c_void_p cast mx_uint traceback {_C}",
    "callback": "logging math save_checkpoint time",
    "context": f"classproperty threading warnings with_metaclass {_C}",
    "contrib.autograd": f"NDArray NDArrayHandle array c_array c_array_buf c_handle_array functools "
    f"mx_uint zeros_like {_C}",
    "engine": _C,
    "executor": f"ExecutorHandle NDArray NDArrayHandle SymbolHandle c_array_buf c_handle_array "
    f"c_str_array copy mx_int mx_uint ndarray np py_array py_str {_C}",
    "executor_manager": "DataDesc cpu logging mx_real_t nd np",
    "gluon.data.vision.transforms": "is_np_array random",
    "image": f"Number os recordio sys {_IMAGE}",
    "image.detection": f"Augmenter CastAug ColorJitterAug ColorNormalizeAug ForceResizeAug "
    f"HueJitterAug ImageIter LightingAug RandomGrayAug RandomOrderAug ResizeAug copyMakeBorder "
    f"fixed_crop {_IMAGE}",
    "image.image": f"Number os recordio sys {_IMAGE}",
    "initializer": "NDArray is_np_array json load logging ndarray np re registry sqrt string_types "
    "warnings",
    "libinfo": "logging os platform",
    "lr_scheduler": "cos logging pi",
    "metric": "OrderedDict math ndarray numeric_types numpy registry string_types",
    "model": "BASE_ESTIMATOR Context DataDesc DataParallelExecutorManager "
    "LogValidationMetricsCallback Uniform cpu get_updater io kvs logging metric mx_real_t "
    "namedtuple nd np opt os sym time warnings",
    "module": "base_module bucketing_module executor_group module python_module sequential_module",
    "module.base_module": "logging metric warnings",
    "module.module": "InitDesc ctx nd opt warnings zeros",
    "monitor": "NDArray NDArrayHandle ctypes logging ndarray py_str re sqrt",
    "name": "classproperty threading warnings with_metaclass",
    "operator": f"CFUNCTYPE Lock MXCallbackList NDArray NDArrayHandle OpHandle POINTER Structure "
    f"array c_array c_array_buf c_bool c_char c_char_p c_int c_str c_void_p cast collections "
    f"context ctypes2numpy_shared is_np_array mx_float mx_int mx_uint pointer py_str symbol "
    f"traceback warnings {_C}",
    "optimizer": "contrib",
    "profiler": f"KVStoreHandle ProfileHandle c_str c_str_array py_str warnings {_C}",
    "random": f"Context integer_types {_C}",
    "recordio": f"RecordIOHandle c_str current_process namedtuple np numbers struct {_C}",
    "registry": "json string_types warnings",
    "rnn": f"load_checkpoint save_checkpoint {_RNN} {_RNN_IO} io rnn rnn_cell",
    "rnn.io": _RNN_IO,
    "rnn.rnn_cell": _RNN,
    "rtc": "NDArray array c_array c_array_buf c_str c_str_array np numeric_types re string_types "
    f"mx_uint {_C}",
    "runtime": f"collections {_C}",
    "util": "ctypes",
    "visualization": "copy json re warnings",
}
# Names of submodules, which are there already.
_OWN = {"optimizer": ("contrib",), "rnn": ("io", "rnn", "rnn_cell")}


def complete_star_imports(package: str = "") -> None:
    """Add to modules the imported names that MXNet's modules also expose.

    Applies to all imported modules, or to those of a `package` imported later.
    """
    for short, names in STARS.items():
        module = sys.modules.get(find_alias(short) or f"mxnet.{short}")
        if module is None or not f"{short}.".startswith(f"{package}." if package else ""):
            continue
        for name in names.split():
            if name not in vars(module):
                setattr(module, name, _find(short, name))
        if "__all__" in vars(module):
            shown = dict.fromkeys([*vars(module)["__all__"], *names.split()])
            vars(module)["__all__"] = list(shown)


def _find(short: str, name: str) -> Any:
    if short == "module" or name in _OWN.get(short, ()):
        return importlib.import_module(f"mxnet.{short}.{name}")
    source, _, attribute = SOURCES.get(name, name).partition(":")
    module = importlib.import_module(source)
    return getattr(module, attribute) if attribute else module
