"""`mx.npx`: neural-network operators on arrays of `mx.np`, devices, files and NumPy semantics.

>>> from mxnet import np, npx
>>> npx.relu(np.array([-1, 2]))
array([0., 2.])
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..base import check_call, classproperty, with_metaclass
from ..context import (
    Context,
    cpu,
    cpu_pinned,
    current_context,
    gpu,
    gpu_memory_info,
    num_gpus,
)
from ..ndarray import waitall
from ..ndarray.contrib import cond, foreach, while_loop
from ..numpy.codegen.namespaces import fill_extension
from ..util import (
    get_cuda_compute_capability,
    is_np_array,
    is_np_shape,
    reset_np,
    set_np,
    use_np,
)
from . import image, random, utils
from .utils import load, save

if TYPE_CHECKING:
    from ._stubs.functions import *  # noqa: F403

__all__ = [
    "Context",
    "check_call",
    "classproperty",
    "cond",
    "cpu",
    "cpu_pinned",
    "current_context",
    "foreach",
    "get_cuda_compute_capability",
    "gpu",
    "gpu_memory_info",
    "image",
    "is_np_array",
    "is_np_shape",
    "load",
    "num_gpus",
    "random",
    "reset_np",
    "save",
    "set_np",
    "use_np",
    "utils",
    "waitall",
    "while_loop",
    "with_metaclass",
]

fill_extension(sys.modules[__name__])
