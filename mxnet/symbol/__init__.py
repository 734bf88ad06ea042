"""`mx.sym`: graphs of operators, made from the registry."""

from __future__ import annotations

import sys

from . import _internal, contrib, image, linalg, op, random, sparse
from .face import add_methods, populate
from .handle import Symbol
from .methods import add_special_methods
from .signs import add_signs
from .symbol import (
    Group,
    Variable,
    arange,
    eye,
    fromjson,
    full,
    histogram,
    hypot,
    linspace,
    load,
    load_json,
    maximum,
    minimum,
    ones,
    pow,
    power,
    split_v2,
    var,
    zeros,
)

__all__ = [
    "Group",
    "Symbol",
    "Variable",
    "arange",
    "contrib",
    "eye",
    "fromjson",
    "full",
    "histogram",
    "hypot",
    "image",
    "linalg",
    "linspace",
    "load",
    "load_json",
    "maximum",
    "minimum",
    "ones",
    "op",
    "pow",
    "power",
    "random",
    "sparse",
    "split_v2",
    "var",
    "zeros",
]


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


add_signs(Symbol)
add_special_methods(Symbol)
_fill_namespaces()
