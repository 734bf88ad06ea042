"""`call_after_import`: run a function right after a module has been imported."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["call_after_import"]

Function = Callable[[ModuleType], None]
During = Callable[[], AbstractContextManager]
_functions: dict[str, tuple[Function, During]] = {}


def call_after_import(name: str, function: Function, during: During = nullcontext) -> None:
    """Call ``function(module)`` when a module is imported; at once if it is already.

    ``package.*`` stands for a package and all of its modules. The module runs inside the context
    that `during` returns.

    >>> call_after_import("this", lambda module: print(module.__name__))
    >>> import contextlib, io
    >>> with contextlib.redirect_stdout(io.StringIO()) as printed:
    ...     import this
    >>> printed.getvalue().split()[-1]
    'this'
    """
    for known, module in list(sys.modules.items()):
        if known == name or (name.endswith(".*") and f"{known}.".startswith(name[:-1])):
            function(module)
    _functions[name] = function, during
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _Finder(MetaPathFinder):
    """Finds the modules that somebody asked about, by means of the finders after it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        names = (fullname, f"{fullname.partition('.')[0]}.*")
        functions = [_functions[name] for name in names if name in _functions]
        if not functions:
            return None
        # Only later finders: an earlier one that asks others too would ask us again, without end.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _CallingLoader(spec.loader, functions)
                return spec
        return None


class _CallingLoader(Loader):
    """Loads a module as its own loader does, and then calls functions with it."""

    def __init__(self, loader: Any, functions: Sequence[tuple[Function, During]]) -> None:
        self._loader, self._functions = loader, functions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the module's own loader makes."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, then the functions."""
        with ExitStack() as contexts:
            for _, during in self._functions:
                contexts.enter_context(during())
            self._loader.exec_module(module)
        for function, _ in self._functions:
            function(module)


_finder = _Finder()
