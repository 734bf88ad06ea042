"""`mx.nd`: eager arrays. Its operator functions are made from the registry, in `face`."""

from __future__ import annotations

from . import _internal, contrib, image, linalg, op, random, sparse, utils
from .core import NDArray
from .creation import *  # noqa: F403 (each module says in __all__ what is public)
from .creation import __all__ as _creation
from .face import add_methods, populate
from .functions import *  # noqa: F403
from .functions import __all__ as _functions
from .ndarray import _DTYPE_MX_TO_NP, _DTYPE_NP_TO_MX, _GRAD_REQ_MAP
from .operators import add_signs
from .sparse import cast_storage
from .utils import load, load_frombuffer, loads, save

add_methods(NDArray)
add_signs(NDArray)


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
