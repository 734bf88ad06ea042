"""Names of a module that are created or imported on first access.

A program uses few of the thousand functions and of the packages here, and making them all would
take longer than the rest of ``import mxnet``.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

__all__ = ["FunctionModule", "import_on_demand", "make_on_demand"]

# Returns the dictionary of a module as it is now.
_namespace: Callable[[ModuleType], dict[str, Any]] = vars(ModuleType)["__dict__"].__get__


class FunctionModule(ModuleType):
    """A module whose ``__getattr__`` makes the functions that ``__all__`` names.

    ``vars(mx.nd)`` and ``mx.nd.__dict__`` create all missing functions.
    """

    @property
    def __dict__(self) -> dict[str, Any]:  # type: ignore[override]
        namespace = _namespace(self)
        for name in namespace["__all__"]:
            if name not in namespace:
                getattr(self, name)
        return namespace

    def __dir__(self) -> list[str]:
        namespace = _namespace(self)
        return sorted({*namespace, *namespace["__all__"]})


def make_on_demand(module: ModuleType, make: Callable[[str], Any]) -> None:
    """Create missing attributes of a module with ``make(name)`` on first access, and keep them.

    >>> from types import ModuleType
    >>> squares = ModuleType("squares")
    >>> squares.__all__ = ["two", "three"]
    >>> make_on_demand(squares, lambda name: {"two": 4, "three": 9}[name])
    >>> squares.two, "three" in dir(squares), vars(squares)["three"]
    (4, True, 9)
    """

    def find(name: str) -> Any:
        value = make(name)
        setattr(module, name, value)
        return value

    module.__getattr__ = find
    module.__class__ = FunctionModule


def import_on_demand(
    package: str, sources: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports some names on first access.

    `sources` says where a name comes from: ``"module"`` below the package, or ``"module:name"``.

    >>> find, _ = import_on_demand("xml", {"parse": "dom.minidom:parse"})
    >>> find("parse").__module__
    'xml.dom.minidom'
    """

    def find(name: str) -> Any:
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, attribute = sources[name].partition(":")
        value = importlib.import_module(f"{package}.{module}")
        value = getattr(value, attribute) if attribute else value
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *sources})
