"""MXNext: the MXNet deep-learning framework on PyTorch's kernels.

>>> import mxnet as mx
>>> (mx.nd.ones((2,)) + 1).asnumpy()
array([2., 2.], dtype=float32)
"""

from . import base, context, error
from . import ndarray as nd
from . import ndarray
from . import autograd
from .base import MXNetError
from .context import Context, cpu, cpu_pinned, current_context, gpu
