"""MXNext: the MXNet deep-learning framework on PyTorch's kernels.

>>> import mxnet as mx
>>> (mx.nd.ones((2,)) + 1).asnumpy()
array([2., 2.], dtype=float32)
"""

from typing import TYPE_CHECKING

from ._process import role as _role

_role.hand_over()  # does not return in the servers of a distributed job

from ._compat import module_names as _module_names
from ._process import interrupts as _interrupts, memory as _memory
from ._process.on_demand import import_on_demand as _import_on_demand

if TYPE_CHECKING:
    from . import contrib, interop as convert, model, module, module as mod, rnn, test_utils
    from . import visualization, visualization as viz
    from ._compat import executor_manager, ndarray_doc, symbol_doc
    from .formats import checkpoints as checkpoint
    from .interop import onnx, serving
    from .interop.serving import client
    from .visualization import tracking
    from .visualization.tracking import progress

_ON_DEMAND = {
    "checkpoint": "formats.checkpoints",
    "client": "interop.serving:client",
    "contrib": "contrib",
    "convert": "interop",
    "executor_manager": "_compat.executor_manager",
    "mod": "module",
    "model": "model",
    "module": "module",
    "ndarray_doc": "_compat.ndarray_doc",
    "onnx": "interop.onnx",
    "progress": "visualization.tracking:progress",
    "rnn": "rnn",
    "serving": "interop.serving",
    "symbol_doc": "_compat.symbol_doc",
    "test_utils": "test_utils",
    "tracking": "visualization.tracking",
    "visualization": "visualization",
    "viz": "visualization",
}
__getattr__, __dir__ = _import_on_demand(__name__, _ON_DEMAND)
_module_names.install()

with (
    _interrupts.explain_interrupt(lambda: "Interrupted during import mxnet."),
    _interrupts.postpone_interrupt(),
    _memory.pause_collection(),  # 10 to 20 % of the import's time
):
    from ._compat import companions as _companions, star_imports as _star_imports
    from ._process import tracebacks as _tracebacks
    from . import accelerator, base, context, dtypes, error, registry
    from . import ndarray, ndarray as nd
    from . import random, random as rnd
    from .runtime import anomaly as _anomaly
    from . import autograd
    from . import attribute, name
    from . import symbol, symbol as sym
    from . import numpy, numpy as np
    from . import numpy_extension, numpy_extension as npx
    from . import operator
    from . import executor
    from ._compat import engine, library, log, memonger, rtc
    from . import libinfo, profiler, runtime, util
    from . import initializer, initializer as init, lr_scheduler
    from . import optimizer, optimizer as opt
    from . import parallel as distributed
    from . import kvstore, kvstore as kv
    from . import metric, callback
    from . import monitor, monitor as mon
    from . import io, recordio
    from . import image, image as img
    from . import gluon
    from .attribute import AttrScope
    from .base import MXNetError
    from .context import Context, cpu, cpu_pinned, current_context, gpu
    from .libinfo import __version__
    from ._process.memory import memory_summary
    from .util import (
        is_np_array,
        is_np_shape,
        np_array,
        np_shape,
        set_np_shape,
        use_np,
        use_np_array,
        use_np_shape,
    )

_companions.install()
_tracebacks.install()
_anomaly.install()
_star_imports.complete_star_imports()

# What ``from mxnet import *`` brings.
globals()["__all__"] = [name for name in (*globals(), *_ON_DEMAND) if not name.startswith("_")]
