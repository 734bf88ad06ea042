"""Short programs that combine features which other tests check separately.

Each function of the modules in `MODULES` is a program: it returns numbers, texts and arrays, which
must equal those that MXNet 1.9.1 returns (`tests/golden/data/combinations.json`). Programs run in
MXNet too, so they use nothing of MXNext. What MXNet cannot judge is in `test_without_mxnet.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

MODULES = ("monitors", "custom_operators", "numpy_networks", "empty_arrays", "optimizers")
MODULES += ("stores", "gluon_networks", "modules")


def programs() -> dict[str, Callable[[], Any]]:
    """Return all programs by module and name."""
    found = {}
    for name in MODULES:
        module = importlib.import_module(f"{__name__}.{name}")
        for key, value in vars(module).items():
            is_own = isinstance(value, FunctionType) and value.__module__ == module.__name__
            if is_own and not key.startswith("_"):
                found[f"{name}.{key}"] = value
    return found


def fill(parameters: Any) -> None:
    """Give parameters (a dict of Gluon's) small numbers that differ."""
    for k, name in enumerate(sorted(parameters)):
        parameter = parameters[name]
        kind = name.rsplit("_", 1)[-1]
        if kind in ("gamma", "var"):
            parameter.set_data(parameter.data() * 0 + 1)
        else:
            parameter.set_data(parameter.data() * 0 + ramp(parameter.shape, k))


def ramp(shape: Any, seed: int = 0) -> Any:
    """Return an array of small numbers that differ, of the kind that is switched on."""
    import mxnet as mx

    size = int(np.prod(shape))
    values = (((np.arange(size) * 7 + 3 * seed) % 11) - 5).reshape(shape) / 10
    make = mx.np.array if mx.util.is_np_array() else mx.nd.array
    return make(values.astype("float32"))


def error_of(call: Callable[[], Any]) -> str:
    """Return the class of the error that a call raises."""
    try:
        result = call()
        for one in result if isinstance(result, (list, tuple)) else [result]:
            if hasattr(one, "asnumpy"):
                one.asnumpy()
    except Exception as error:
        return "raises " + type(error).__name__
    return "raises nothing"


def plain(value: Any) -> Any:
    """Return a result as JSON has it."""
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return {"dtype": str(value.dtype), "values": np.asarray(value, "float64").tolist()}
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, bytes):
        return value.decode()
    return value
