"""`mx.np`: NumPy's functions on arrays with devices and gradients.

>>> from mxnet import np, npx
>>> (np.ones((2,)) + 1).sum()
array(4.)
"""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as onp

from ..symbol import numpy as symbol_module
from ..symbol.numpy import _Symbol
from . import dispatch, fallback, fallback_linalg, linalg, random, standard, utils
from .arrayprint import set_printoptions
from .codegen.functions import Maker
from .codegen.namespaces import fill, fill_all
from .codegen.operator_overloads import add_operator_overloads, add_symbol_overloads
from .function_base import meshgrid
from .io import genfromtxt
from .multiarray import array, empty, ndarray
from .utils import *  # noqa: F403 (constants and dtypes)
from .utils import __all__ as _constants

if TYPE_CHECKING:
    from ._stubs.functions import *  # noqa: F403

__all__ = [
    "array",
    "empty",
    "genfromtxt",
    "linalg",
    "meshgrid",
    "ndarray",
    "random",
    "set_printoptions",
    *_constants,
]


def _public(module: ModuleType) -> dict[str, Maker]:
    return {name: partial(getattr, module, name) for name in module.__all__}


_here = sys.modules[__name__]
_names = fill_all({"np": _here, "linalg": linalg, "random": random})
fill(linalg, _public(fallback_linalg))
fill(_here, _public(fallback) | _public(standard))
fill(_here, {name: partial(getattr, _here, other) for name, other in standard.SYNONYMS.items()})
add_operator_overloads(ndarray, _here)
add_symbol_overloads(_Symbol, symbol_module)

dispatch.register_namespace(onp, _here, [*fallback.NAMES, *_names, "meshgrid"])
dispatch.register_namespace(onp.linalg, linalg, linalg.__all__)

for _name, _method in {
    "__array_function__": dispatch.array_function,
    "__array_ufunc__": dispatch.array_ufunc,
    "__array_namespace__": standard.array_namespace,
}.items():
    setattr(ndarray, _name, _method)

from . import multiarray, stride_tricks  # noqa: E402 (they show what is made above)
