"""Operators that users write in Python: `CustomOp`, and the older `NumpyOp` and `NDArrayOp`.

The class `CustomOpProp` describes an operator (its names, shapes and types) and makes `CustomOp`
objects that compute. Both run in `mx.nd.Custom` and `mx.sym.Custom`.
"""

from __future__ import annotations

from typing import NamedTuple

from ..ops import registry
from . import running  # declares the operator `Custom`
from .custom import CustomOp, CustomOpProp, register
from .older_forms import NDArrayOp, NumpyOp, PythonOp

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
    """How many arguments an operator has, their names and their types.

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

    >>> mx.operator.get_operator_arguments("Activation").names
    ['data', 'act_type']
    """
    found = registry.get(op_name)
    names = [i.name for i in found.inputs] + list(found.attributes)
    if found.variadic is not None:
        names.insert(0, found.variadic)
    types = ["NDArray-or-Symbol"] * (len(names) - len(found.attributes))
    types += [a.type.label for a in found.attributes.values()]
    return OperatorArguments(len(names), names, types)
