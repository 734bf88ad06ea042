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
from . import initializer, initializer as init, lr_scheduler  # noqa: E402
from . import optimizer, optimizer as opt  # noqa: E402
from . import kvstore, kvstore as kv  # noqa: E402
from . import recordio  # noqa: E402
from .attribute import AttrScope  # noqa: E402
from .base import MXNetError  # noqa: E402
from .context import Context, cpu, cpu_pinned, current_context, gpu  # noqa: E402
from .libinfo import __version__  # noqa: E402
