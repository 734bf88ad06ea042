"""`mxnet.optimizer.optimizer`, MXNet's module of all optimizers and `Updater`."""

from __future__ import annotations

from typing import Any

from .. import ndarray
from ..ndarray import abs as NDabs
from .adaptive import FTML, AdaDelta, AdaGrad, Adam, Adamax, Ftrl, Nadam, RMSProp
from .base import Optimizer, create, register
from .large_batch import LAMB, LARS, LBSGD
from .sgd import DCASGD, NAG, SGD, SGLD, Signum, Test, ccSGD
from .updater import Updater, get_updater


def _flatten_list(nested: list[list]) -> list:
    return [element for part in nested for element in part]


def __getattr__(name: str) -> Any:
    if name.endswith("_update"):  # as in MXNet's module
        return getattr(ndarray, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DCASGD",
    "FTML",
    "LAMB",
    "LARS",
    "LBSGD",
    "NAG",
    "SGD",
    "SGLD",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "NDabs",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Test",
    "Updater",
    "ccSGD",
    "create",
    "get_updater",
    "register",
]

# Pickles refer to classes by module; this is MXNet's.
for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
