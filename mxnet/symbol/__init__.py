"""`mx.sym`: symbolic graphs of operators."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from . import _internal, contrib, image, linalg, numpy, numpy_extension, op, random, sparse
from . import functions as _functions
from . import numpy as np
from . import numpy_extension as npx
from . import symbol as _symbol_module
from .codegen import add_methods, populate
from .functions import *  # noqa: F403 (MXNet shows them here)
from .functions import fromjson, split_v2
from .methods import add_operator_overloads, add_special_methods
from .symbol import Symbol

if TYPE_CHECKING:
    from ._stubs.functions import *  # noqa: F403
    from ._stubs.op import *  # noqa: F403

__all__ = ["contrib", "fromjson", "image", "linalg", "op", "random", "sparse"]
__all__ += _functions.__all__


# MXNet's `mxnet.symbol.symbol` has these functions too.
for _name in _functions.__all__:
    setattr(_symbol_module, _name, getattr(_functions, _name))
_symbol_module.__all__ = list(_functions.__all__)


def _fill_namespaces() -> None:
    populate(
        {
            "_internal": _internal,
            "contrib": contrib,
            "image": image,
            "linalg": linalg,
            "op": op,
            "random": random,
            "sparse": sparse,
            "symbol": sys.modules[__name__],
        }
    )
    add_methods(Symbol)


add_operator_overloads(Symbol)
add_special_methods(Symbol)
Symbol.split_v2 = split_v2
_fill_namespaces()
