"""Fills `mx.np` and `mx.npx`, and those of `mx.nd` and `mx.sym`, with functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from ..._process.on_demand import make_on_demand
from ...name import NameManager
from ...ndarray import numpy as eager_module
from ...ndarray import numpy_extension as eager_extension
from ...ndarray.codegen import make_function
from ...ops import registry
from ...ops.declare import Op
from ...runtime.composites.namespace import bind
from ...symbol import numpy as symbol_module
from ...symbol import numpy_extension as symbol_extension
from ...symbol.codegen import make_function as make_symbol_function
from ...symbol.numpy import _Symbol
from ..composites import creation, elements, extension, linalg, random, reduction, shaping
from ..multiarray import ndarray
from . import methods
from .functions import GLOSSARY, Maker, NumpyNamespace, composites_of, universal_functions

TOP_LEVEL = (creation, reduction, shaping, elements)
# Other names of universal functions.
SYNONYMS = {
    "divide": "true_divide",
    "remainder": "mod",
    "rad2deg": "degrees",
    "deg2rad": "radians",
}
PREFIXES = ("_npi_", "_npx_", "_np_")


def short_name(name: str) -> str:
    """Return a registered name without its prefix.

    >>> short_name("_npi_add"), short_name("_npx_relu")
    ('add', 'relu')
    """
    for prefix in PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def _make_symbolic(op: Op, name: str) -> Callable:
    function = make_symbol_function(op, short_name(name), _Symbol)

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("dtype", name) is None:
            del kwargs["dtype"]
        symbol = function(*args, **kwargs)
        return symbol if len(symbol._heads) == 1 else list(symbol)

    for key in ("__signature__", "__doc__", "__name__"):
        setattr(call, key, getattr(function, key))
    call.__qualname__ = call.__name__
    return call


def _make_eager(op: Op, name: str) -> Callable:
    return make_function(op, short_name(name), ndarray)


def _eager_number(value: Any) -> dict[str, Any]:
    return {"scalar": float(value)}


def _symbolic_number(value: Any) -> dict[str, Any]:
    """Return a number in the form of MXNet 1.9.1's graphs, which distinguish int and float."""
    return {"scalar": float(value), "is_int": isinstance(value, int)}


eager = NumpyNamespace(ndarray, _make_eager, _eager_number)
symbolic = NumpyNamespace(_Symbol, _make_symbolic, _symbolic_number, is_symbolic=True)


def functions_of(F: NumpyNamespace, module: str) -> dict[str, Maker]:
    """Return factories of the top-level functions of a namespace, by name."""
    makers = {name: functools.cache(make) for name, make in universal_functions(F).items()}
    for name, other in SYNONYMS.items():
        if other in makers:
            makers[name] = makers[other]
    return makers | _bind_all(composites_of(TOP_LEVEL), F, module, is_top_level=True)


class _Given(NameManager):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def get(self, name: str | None, hint: str) -> str:
        return self._outer[-1].get(name or self._name, hint)


def _nameable(function: Callable) -> Callable:
    """Add the parameter ``name`` to a function of symbols, as in MXNet."""

    @functools.wraps(function)
    def call(*args: Any, name: str | None = None, **kwargs: Any) -> Any:
        if name is None:
            return function(*args, **kwargs)
        with _Given(name):
            return function(*args, **kwargs)

    return call


def _bind_all(
    composites: dict[str, Callable], F: NumpyNamespace, module: str, is_top_level: bool = False
) -> dict[str, Maker]:
    def make(name: str, function: Callable) -> Callable:
        bound = bind(function, F, module, glossary=GLOSSARY)
        is_builtin = is_top_level and registry.find(f"_np_{name}") is not None
        return _nameable(bound) if F.is_symbolic and is_builtin else bound

    return {
        name: functools.cache(functools.partial(make, name, function))
        for name, function in composites.items()
    }


_makers: dict[ModuleType, dict[str, Maker]] = {}


def fill(module: ModuleType, makers: Mapping[str, Maker]) -> None:
    """Create the functions of a module on first access; its `__all__` names them."""
    if module not in _makers:
        _makers[module] = {}
        others = getattr(module, "__getattr__", None)  # functions of the module itself
        make_on_demand(module, functools.partial(_make, module, others))
    _makers[module].update(makers)
    names = sorted({*getattr(module, "__all__", ()), *makers})
    setattr(module, "__all__", names)  # noqa: B010 (type checkers do not know it)


def _make(module: ModuleType, others: Callable[[str], Any] | None, name: str) -> Any:
    make = _makers[module].get(name)
    if make is None and others is not None:
        return others(name)
    if make is None:
        raise AttributeError(
            f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module
        )
    return make()


def fill_internal(module: ModuleType, F: NumpyNamespace) -> None:
    """Add operators under their names without prefix to a module, created on first access."""

    def find(name: str) -> Callable:
        for prefix in PREFIXES:
            if not name.startswith("__") and registry.find(prefix + name) is not None:
                return getattr(F, prefix + name)
        raise AttributeError(
            f"module {module.__name__!r} has no attribute {name!r}", name=name, obj=module
        )

    module.__getattr__ = find


def fill_all(public: dict[str, ModuleType]) -> list[str]:
    """Fill the modules of `mx.nd.np` and `mx.sym.np`; return the names of the functions.

    `public` has the modules of `mx.np` with the same functions: 'np', 'linalg' and 'random'.
    """
    names: list[str] = []
    for F, module in ((eager, eager_module), (symbolic, symbol_module)):
        name = "mxnet.numpy" if F is eager else module.__name__
        functions = functions_of(F, name)
        names = names or list(functions)
        for shown in (module, public["np"]) if F is eager else (module,):
            fill(shown, functions)
        fill_internal(module._internal, F)
        for part, source in (("linalg", linalg), ("random", random)):
            bound = _bind_all(composites_of([source]), F, f"{name}.{part}")
            fill(getattr(module, part), bound)
            if F is eager:
                fill(public[part], bound)
        for key, method in composites_of([methods]).items():
            setattr(F.array_class, key, bind(method, module, name, glossary=GLOSSARY))
    return names


# -- `mx.npx` ---------------------------------------------------------------------------------


def _show_as(F: NumpyNamespace, op: str, name: str, module: str) -> Callable:
    function: Any = getattr(F, op)
    function.__name__ = function.__qualname__ = name
    function.__module__ = module
    return function


def _operators_of(F: NumpyNamespace, prefix: str, module: str) -> dict[str, Maker]:
    return {
        short: functools.partial(_show_as, F, name, short, module)
        for name in registry.names()
        if name.startswith(prefix) and not (short := name.removeprefix(prefix)).startswith("_")
    }


def fill_extension(public: ModuleType) -> None:
    """Fill `mx.npx` (`public`), `mx.nd.npx` and `mx.sym.npx`."""
    composites = composites_of([extension])
    samplers = {name: composites.pop(name) for name in extension.RANDOM}
    for F, module in ((eager, eager_extension), (symbolic, symbol_extension)):
        name = public.__name__ if F is eager else module.__name__
        parts = {
            "": _operators_of(F, "_npx_", name) | _bind_all(composites, F, name),
            "image": _operators_of(F, "_npx__image_", f"{name}.image"),
            "random": _bind_all(samplers, F, f"{name}.random"),
        }
        for shown in (module, public) if F is eager else (module,):
            for part, functions in parts.items():
                fill(getattr(shown, part) if part else shown, functions)
