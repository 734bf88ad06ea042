"""`mx.nd`: eager arrays. Operator functions are generated from the registry by `codegen`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _internal, contrib, image, linalg, numpy, numpy_extension, op, random, sparse, utils
from . import ndarray as _ndarray_module
from . import numpy as np
from . import numpy_extension as npx
from .codegen import add_methods, populate
from .creation import *  # noqa: F403 (each module lists its public names in __all__)
from .creation import __all__ as _creation
from .functions import *  # noqa: F403
from .functions import __all__ as _functions
from .ndarray import _DTYPE_MX_TO_NP, _DTYPE_NP_TO_MX, _GRAD_REQ_MAP, NDArray
from .operator_overloads import add_operator_overloads
from .sparse import cast_storage
from .utils import load, load_frombuffer, loads, save

if TYPE_CHECKING:
    from ._stubs.functions import *  # noqa: F403
    from ._stubs.op import *  # noqa: F403

# MXNet's `mxnet.ndarray.ndarray` has these functions too.
for _name in (*_creation, *_functions):
    setattr(_ndarray_module, _name, globals()[_name])
_ndarray_module.__all__ += [*_creation, *_functions]

add_methods(NDArray)
add_operator_overloads(NDArray)


def _fill_namespaces() -> None:
    import sys

    modules = {
        "_internal": _internal,
        "contrib": contrib,
        "image": image,
        "linalg": linalg,
        "ndarray": sys.modules[__name__],
        "op": op,
        "random": random,
        "sparse": sparse,
    }
    populate(modules, NDArray)


__all__ = [
    "_DTYPE_MX_TO_NP",
    "_DTYPE_NP_TO_MX",
    "_GRAD_REQ_MAP",
    "NDArray",
    "contrib",
    "image",
    "linalg",
    "load",
    "load_frombuffer",
    "loads",
    "op",
    "random",
    "save",
    "sparse",
    "utils",
    *_creation,
    *_functions,
]

_fill_namespaces()
