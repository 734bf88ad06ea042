"""Fills `mx.npx`, `mx.nd.npx` and `mx.sym.npx` from the operator registry and the composites."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from ..composites.namespace import OperatorNamespace, bind
from ..ndarray import numpy_extension as eager_module
from ..numpy.codegen.functions import composites_of
from ..numpy.codegen.glossary import GLOSSARY
from ..numpy.codegen.namespaces import eager, fill, symbolic
from ..numpy.composites import extension
from ..ops import registry
from ..symbol import numpy_extension as symbol_module

PREFIX, IMAGE_PREFIX = "_npx_", "_npx__image_"


def _named(F: OperatorNamespace, name: str, short: str, module: str) -> Callable:
    function = getattr(F, name)
    function.__name__ = function.__qualname__ = short
    function.__module__ = module
    return function


def operators_of(F: OperatorNamespace, prefix: str, module: str) -> dict[str, Callable]:
    """Return the operators whose registered names begin with a prefix, without it."""
    return {
        short: _named(F, name, short, module)
        for name in registry.names()
        if name.startswith(prefix) and not (short := name.removeprefix(prefix)).startswith("_")
    }


def fill_all(public: ModuleType) -> None:
    """Fill the three namespaces; `public` shows the functions of arrays."""
    random = {name: getattr(extension, name) for name in extension.RANDOM}
    for F, module in ((eager, eager_module), (symbolic, symbol_module)):
        name = public.__name__ if F is eager else module.__name__
        functions = operators_of(F, PREFIX, name)
        composites = composites_of([extension])
        functions |= {k: bind(f, F, name, glossary=GLOSSARY) for k, f in composites.items()}
        images = operators_of(F, IMAGE_PREFIX, f"{name}.image")
        samplers = {k: bind(f, F, f"{name}.random", glossary=GLOSSARY) for k, f in random.items()}
        shown = [module, public] if F is eager else [module]
        for each in shown:
            fill(each, functions)
            fill(each.image, images)
            fill(each.random, samplers)
