"""MXNext: the MXNet deep-learning framework on PyTorch's kernels.

>>> import mxnet as mx
>>> (mx.nd.ones((2,)) + 1).asnumpy()
array([2., 2.], dtype=float32)
"""

from typing import TYPE_CHECKING

from . import role

role.hand_over()  # does not return in the servers of a distributed job

from . import interrupts, memory
from .on_demand import import_on_demand

if TYPE_CHECKING:
    from . import checkpoint, contrib, convert, module, module as mod, ndarray_doc, onnx, rnn
    from . import serving, symbol_doc, test_utils, tracking, visualization, visualization as viz
    from .serving import client
    from .tracking import progress

_ON_DEMAND = {
    "checkpoint": "checkpoint",
    "client": "serving:client",
    "contrib": "contrib",
    "convert": "convert",
    "mod": "module",
    "module": "module",
    "ndarray_doc": "ndarray_doc",
    "onnx": "onnx",
    "progress": "tracking:progress",
    "rnn": "rnn",
    "serving": "serving",
    "symbol_doc": "symbol_doc",
    "test_utils": "test_utils",
    "tracking": "tracking",
    "visualization": "visualization",
    "viz": "visualization",
}
__getattr__, __dir__ = import_on_demand(__name__, _ON_DEMAND)

with (
    interrupts.explain_interrupt(lambda: "Interrupted during import mxnet."),
    interrupts.postpone_interrupt(),
    memory.pause_collection(),  # 10 to 20 % of the import's time
):
    from . import compatibility, tracebacks
    from . import companions
    from . import accelerator, base, context, dtypes, error, registry
    from . import ndarray, ndarray as nd
    from . import random, random as rnd
    from . import anomaly, autograd
    from . import attribute, name
    from . import symbol, symbol as sym
    from . import numpy, numpy as np
    from . import numpy_extension, numpy_extension as npx
    from . import operator
    from . import executor
    from . import memonger
    from . import engine, library, libinfo, log, profiler, rtc, runtime, util
    from . import initializer, initializer as init, lr_scheduler
    from . import optimizer, optimizer as opt
    from . import distributed
    from . import kvstore, kvstore as kv
    from . import metric, callback
    from . import monitor, monitor as mon
    from . import io, recordio
    from . import image, image as img
    from . import model
    from . import gluon
    from .attribute import AttrScope
    from .base import MXNetError
    from .context import Context, cpu, cpu_pinned, current_context, gpu
    from .libinfo import __version__
    from .memory import memory_summary
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

companions.install()
tracebacks.install()
anomaly.install()
compatibility.complete_star_imports()

# What ``from mxnet import *`` brings.
globals()["__all__"] = [name for name in (*globals(), *_ON_DEMAND) if not name.startswith("_")]
