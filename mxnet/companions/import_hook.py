"""`call_after_import`: run a function right after a module has been imported."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["call_after_import"]

_waiting: dict[str, Callable[[ModuleType], None]] = {}


def call_after_import(name: str, function: Callable[[ModuleType], None]) -> None:
    """Call ``function(module)`` once the named module is imported; at once if it is already.

    >>> call_after_import("this", lambda module: print(module.__name__))
    >>> import contextlib, io
    >>> with contextlib.redirect_stdout(io.StringIO()) as printed:
    ...     import this
    >>> printed.getvalue().split()[-1]
    'this'
    """
    module = sys.modules.get(name)
    if module is not None:
        function(module)
        return
    _waiting[name] = function
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _Finder(MetaPathFinder):
    """Finds the modules that are waited for, by all other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        function = _waiting.pop(fullname, None)
        if function is None:
            return None
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        spec.loader = _CallingLoader(spec.loader, function)
        return spec


class _CallingLoader(Loader):
    """Loads a module as its own loader does, and then calls a function with it."""

    def __init__(self, loader: Any, function: Callable[[ModuleType], None]) -> None:
        self._loader, self._function = loader, function

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._function(module)


_finder = _Finder()
