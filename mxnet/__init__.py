"""MXNext: the MXNet deep-learning framework on PyTorch's kernels.

>>> import mxnet as mx
>>> (mx.nd.ones((2,)) + 1).asnumpy()
array([2., 2.], dtype=float32)
"""

from . import memory

memory.keep_freed_memory()  # before the first array is made

from . import base, context, error, registry  # noqa: E402
from . import ndarray, ndarray as nd  # noqa: E402
from . import random, random as rnd  # noqa: E402
from . import autograd  # noqa: E402
from . import attribute, name  # noqa: E402
from . import symbol, symbol as sym  # noqa: E402
from . import operator  # noqa: E402 (declares Custom: before the faces are made)
from . import executor  # noqa: E402
from . import engine, library, libinfo, log, profiler, rtc, runtime, util  # noqa: E402
from . import visualization, visualization as viz  # noqa: E402
from . import initializer, initializer as init, lr_scheduler  # noqa: E402
from . import optimizer, optimizer as opt  # noqa: E402
from . import kvstore, kvstore as kv  # noqa: E402
from . import io, recordio  # noqa: E402
from . import image, image as img  # noqa: E402
from . import gluon  # noqa: E402
from . import test_utils  # noqa: E402
from .attribute import AttrScope  # noqa: E402
from .base import MXNetError  # noqa: E402
from .context import Context, cpu, cpu_pinned, current_context, gpu  # noqa: E402
from .libinfo import __version__  # noqa: E402
from .util import (  # noqa: E402
    is_np_array,
    is_np_shape,
    np_array,
    np_shape,
    set_np_shape,
    use_np,
    use_np_array,
    use_np_shape,
)
