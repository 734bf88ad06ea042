"""Restores removed names while a program runs, visible to the program's code only.

Modules get a ``__getattr__`` that answers only to frames of the program, so that
libraries which test for a name still find it absent. All changes are reverted at the end.
"""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from . import removed
from .program import Program, owns
from .rewriting import prepare_program

HOOKED = {*removed.ATTRIBUTES, *removed.METHODS, *removed.CALLS}


@contextmanager
def restored_names(program: Program) -> Iterator[None]:
    """Restore removed names until the end of the block."""
    with ExitStack() as stack:
        hooks = _Hooks(program, stack)
        for name in HOOKED & set(sys.modules):
            hooks.apply(sys.modules[name])
        first, last = _HookingFinder(program, hooks), _StandInFinder(program, stack)
        sys.meta_path.insert(0, first)
        stack.callback(sys.meta_path.remove, first)
        sys.meta_path.append(last)
        stack.callback(sys.meta_path.remove, last)
        yield


def resolve(dotted: str) -> Any:
    """Return the object at ``module:attribute``."""
    module, _, dotted = dotted.partition(":")
    value: Any = importlib.import_module(module)
    for part in filter(None, dotted.split(".")):
        value = getattr(value, part)
    return value


class _Hooks:
    """Adds old names to modules and classes, and removes them at the end."""

    def __init__(self, program: Program, stack: ExitStack) -> None:
        self._program, self._stack = program, stack

    def apply(self, module: types.ModuleType) -> None:
        name = module.__name__
        if rows := removed.ATTRIBUTES.get(name):
            self._hook_attributes(module, rows)
        for class_name, methods in removed.METHODS.get(name, {}).items():
            owner = getattr(module, class_name, None)
            if owner is None:
                continue
            for method, row in methods.items():
                self._hook_method(owner, method, row)
        for function, path in removed.CALLS.get(name, {}).items():
            self._hook_call(module, function, path)

    def _hook_attributes(self, module: types.ModuleType, rows: dict[str, removed.Row]) -> None:
        previous = vars(module).get("__getattr__")
        program = self._program

        def __getattr__(name: str) -> Any:
            row = rows.get(name)
            if row is not None and (frame := program.caller()) is not None:
                path, instead = removed.read_row(row)
                value = resolve(path)
                program.note(frame, f"{module.__name__}.{name}", instead)
                return value
            if previous is not None:
                return previous(name)
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

        module.__getattr__ = __getattr__  # type: ignore[method-assign]
        self._stack.callback(_restore, module, "__getattr__", previous)

    def _hook_method(self, owner: type, name: str, row: removed.Row) -> None:
        if hasattr(owner, name):
            return
        try:
            setattr(owner, name, _Method(self._program, owner, name, row))
        except TypeError:  # a class of C cannot be changed
            return
        self._stack.callback(delattr, owner, name)

    def _hook_call(self, module: types.ModuleType, name: str, path: str) -> None:
        """Accept calls of the program that a function refuses today."""
        function, program = getattr(module, name), self._program

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            frame = program.caller()
            if frame is None:
                return function(*args, **kwargs)
            result, instead = resolve(path)(function, *args, **kwargs)
            if instead:
                program.note(frame, f"{module.__name__}.{name}", instead)
            return result

        setattr(module, name, call)
        self._stack.callback(setattr, module, name, function)


def _restore(module: types.ModuleType, name: str, previous: Any) -> None:
    if previous is None:
        vars(module).pop(name, None)
    else:
        setattr(module, name, previous)


class _Method:
    """A method that only the program's code can see."""

    def __init__(self, program: Program, owner: type, name: str, row: removed.Row) -> None:
        self._program, self._owner, self._name = program, owner, name
        self._path, self._instead = removed.read_row(row)

    def __get__(self, instance: Any, owner: type) -> Any:
        frame = self._program.caller()
        if frame is None:
            raise AttributeError(f"{owner.__name__!r} object has no attribute {self._name!r}")
        self._program.note(frame, f"{self._owner.__name__}.{self._name}", self._instead)
        value = resolve(self._path)
        return value.__get__(instance, owner)


class _HookingFinder(importlib.abc.MetaPathFinder):
    """Hooks libraries, and prepares the program's own modules, when they are imported."""

    def __init__(self, program: Program, hooks: _Hooks) -> None:
        self._program, self._hooks = program, hooks

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec that later finders give, with a loader that calls us."""
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            if isinstance(finder, _StandInFinder):
                continue
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find is not None else None
            if spec is not None:
                break
        else:
            return None
        if spec.loader is None or not hasattr(spec.loader, "exec_module"):
            return spec
        if fullname in HOOKED:
            spec.loader = _Loader(spec.loader, after=self._hooks.apply)
        elif spec.origin and spec.origin.endswith(".py") and owns(spec.origin):
            if isinstance(spec.loader, importlib.machinery.SourceFileLoader):
                spec.loader = _RewritingLoader(fullname, spec.origin)
            spec.loader = _Loader(spec.loader, before=self._prepare)
        return spec

    def _prepare(self, module: types.ModuleType) -> None:
        """Record the source of a module of the program, and provide the builtins it needs."""
        path = module.__spec__.origin if module.__spec__ else None
        try:
            with open(str(path), "rb") as file:  # noqa: PTH123 (the program may replace Path)
                tree = self._program.add_file(str(path), file.read())
        except (OSError, SyntaxError, ValueError):
            return  # importing it reports what is wrong
        give_builtins(self._program, tree, vars(module))


class _Loader(importlib.abc.Loader):
    """A loader that calls functions before and after the real one runs a module."""

    def __init__(
        self,
        real: Any,
        before: Callable[[types.ModuleType], None] | None = None,
        after: Callable[[types.ModuleType], None] | None = None,
    ) -> None:
        self._real, self._before, self._after = real, before, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self._real.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        if self._before is not None:
            self._before(module)
        self._real.exec_module(module)
        if self._after is not None:
            self._after(module)


class _RewritingLoader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> types.CodeType:
        """Compile the module; the result is not cached, because Python would take it too."""
        path = self.get_filename(fullname)
        in_package = "." in fullname or self.is_package(fullname)
        tree, _ = prepare_program(self.get_data(path), path, is_in_package=in_package)
        return compile(tree, path, "exec", dont_inherit=True)


class _StandInFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds removed modules, after all other finders."""

    def __init__(self, program: Program, stack: ExitStack) -> None:
        self._program, self._stack = program, stack

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        is_removed = fullname in removed.MODULES or fullname in removed.MADE_MODULES
        frame = self._program.caller() if is_removed else None
        if frame is None:
            return None
        instead = removed.MODULES.get(fullname) or removed.MADE_MODULES[fullname][0]
        shown = f"import {instead}" if fullname in removed.MODULES else instead
        self._program.note(frame, f"import {fullname}", shown)
        is_package = any(n.startswith(f"{fullname}.") for n in removed.MADE_MODULES) or (
            fullname == "sklearn.externals"
        )
        return importlib.machinery.ModuleSpec(fullname, self, is_package=is_package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        self._stack.callback(sys.modules.pop, spec.name, None)
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        name = module.__name__
        if name in removed.MODULES:
            successor = importlib.import_module(removed.MODULES[name])
            public = {k: v for k, v in vars(successor).items() if not k.startswith("__")}
            vars(module).update(public)
            return
        for attribute, path in removed.MADE_MODULES[name][1].items():
            setattr(module, attribute, resolve(path))
        rows = removed.ATTRIBUTES.get(name, {})
        if rows:
            vars(module)["__getattr__"] = lambda old: _from_rows(name, rows, old)


def _from_rows(module: str, rows: dict[str, removed.Row], name: str) -> Any:
    if name not in rows:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    return resolve(removed.read_row(rows[name])[0])


class _Builtins(dict):
    """The builtins, with those of Python 2 for one file of the program."""

    def __init__(self, program: Program) -> None:
        super().__init__(vars(builtins))
        self._program = program

    def __missing__(self, name: str) -> Any:
        row = removed.BUILTINS.get(name)
        if row is None:
            raise KeyError(name)
        path, instead = removed.read_row(row)
        frame = self._program.caller()
        if frame is not None:
            self._program.note(frame, name, instead)
        return resolve(path)


def give_builtins(program: Program, tree: ast.Module, namespace: dict[str, Any]) -> None:
    """Add the builtins of Python 2 to a namespace, if its source mentions one of them.

    Others keep the plain ones, which the interpreter looks up faster.
    """
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if used & removed.BUILTINS.keys():
        namespace["__builtins__"] = _Builtins(program)
