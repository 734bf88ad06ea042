"""User-defined operators in Python: `CustomOp`, and the older `NumpyOp` and `NDArrayOp`.

A `CustomOpProp` describes an operator (names, shapes and types) and creates `CustomOp` objects,
which compute. Use them with `mx.nd.Custom` and `mx.sym.Custom`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .ops import registry
from .ops.attributes import Attribute, to_string
from .runtime.custom import running  # declares the operator `Custom`
from .runtime.custom.custom import CustomOp, CustomOpProp, register
from .runtime.custom.older_forms import NDArrayOp, NumpyOp, PythonOp

__all__ = [
    "CustomOp",
    "CustomOpProp",
    "NDArrayOp",
    "NumpyOp",
    "OperatorArguments",
    "PythonOp",
    "get_all_registered_operators",
    "get_operator_arguments",
    "register",
]


class OperatorArguments(NamedTuple):
    """Number, names and types of an operator's arguments.

    Parameters
    ----------
    narg
        Number of arguments.
    names
        Names of the arguments.
    types
        Types of the arguments.

    >>> mx.operator.get_operator_arguments("Activation").narg
    2
    """

    narg: int
    names: list[str]
    types: list[str]


def get_all_registered_operators() -> list[str]:
    """Return the names of all operators.

    >>> "FullyConnected" in mx.operator.get_all_registered_operators()
    True
    """
    return registry.names()


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """Return the inputs and attributes of an operator.

    Parameters
    ----------
    op_name
        Name of the operator.

    >>> mx.operator.get_operator_arguments("LeakyReLU").types[-1]
    'float, optional, default=0.333999991'
    """
    op = registry.get(op_name)
    types = {i.name: "NDArray-or-Symbol" for i in op.inputs}
    if op.variadic is not None:
        types = {op.variadic: "NDArray-or-Symbol[]", **types}
        if op.count is not None:
            types[op.count] = "int, required"
    types |= {name: _describe(a) for name, a in op.attributes.items()}
    return OperatorArguments(len(types), list(types), list(types.values()))


def _describe(attribute: Attribute) -> str:
    """Format the type and the default of an attribute as in MXNet."""
    label = attribute.type.label
    if label.endswith("} or None"):
        label = "{None, " + label[1:].removesuffix(" or None")
    if attribute.required:
        return f"{label}, required"
    default = attribute.default
    if isinstance(default, bool):
        text = str(int(default))
    elif isinstance(default, float):
        text = f"{float(np.float32(default)):.9g}"
    elif isinstance(default, tuple):
        text = "[" + ",".join(f"{float(n):.9g}" for n in default) + "]"
    else:
        text = to_string(default)
    is_quoted = label.startswith("{") or label in ("int", "int or None", "string")
    separator = "," if label.startswith("{") else ", "
    return f"{label}{separator}optional, default={repr(text) if is_quoted else text}"
