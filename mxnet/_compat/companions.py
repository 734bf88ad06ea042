"""Adjustments of packages for MXNet that do not work with current torch and NumPy.

Some packages raise for unknown versions of torch, which MXNext requires, although they do not use
it with MXNet. Others use names removed from NumPy. `ADJUSTMENTS` lists these modules; each function
is called directly after the import of a module, and changes only what its docstring describes.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import numpy as np

__all__ = [
    "ADJUSTMENTS",
    "Adjustment",
    "call_after_import",
    "install",
]

Function = Callable[[ModuleType], None]
During = Callable[[], AbstractContextManager]
_functions: dict[str, tuple[Function, During]] = {}


def call_after_import(name: str, function: Function, during: During = nullcontext) -> None:
    """Call ``function(module)`` after a module is imported, or immediately if it already is.

    ``package.*`` means a package and all of its modules. The module runs inside the context
    that `during` returns.

    >>> call_after_import("this", lambda module: print(module.__name__))
    >>> import contextlib, io
    >>> with contextlib.redirect_stdout(io.StringIO()) as printed:
    ...     import this
    >>> printed.getvalue().split()[-1]
    'this'
    """
    package, is_whole = name.removesuffix(".*"), name.endswith(".*")
    if package in sys.modules:
        function(sys.modules[package])
        below = [m for m in sys.modules if is_whole and m.startswith(f"{package}.")]
        for module in below:
            function(sys.modules[module])
    _functions[name] = function, during
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


class _Finder(MetaPathFinder):
    """Finds modules with registered callbacks, through the finders after it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        names = (fullname, f"{fullname.partition('.')[0]}.*")
        functions = [_functions[name] for name in names if name in _functions]
        if not functions:
            return None
        # Only later finders: an earlier one that calls other finders would recurse.
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec = find(fullname, path, target) if find is not None else None
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _CallingLoader(spec.loader, functions)
                return spec
        return None


class _CallingLoader(Loader):
    def __init__(self, loader: Any, functions: Sequence[tuple[Function, During]]) -> None:
        self._loader, self._functions = loader, functions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        with ExitStack() as contexts:
            for _, during in self._functions:
                contexts.enter_context(during())
            self._loader.exec_module(module)
        for function, _ in self._functions:
            function(module)


_finder = _Finder()


# -- NumPy's old names, such as ``np.float`` ------------------------------------------------------


# Removed in NumPy 1.24 and 2.0.
REMOVED_NAMES: dict[str, Any] = {
    "bool": bool,
    "complex": complex,
    "float": float,
    "int": int,
    "object": object,
    "str": str,
    "long": int,
    "unicode": str,
    "float_": np.float64,
    "complex_": np.complex128,
    "string_": np.bytes_,
    "unicode_": np.str_,
    "Inf": np.inf,
    "Infinity": np.inf,
    "infty": np.inf,
    "NaN": np.nan,
    "PINF": np.inf,
    "NINF": -np.inf,
    "alltrue": np.all,
    "sometrue": np.any,
    "product": np.prod,
    "cumproduct": np.cumprod,
    "row_stack": np.vstack,
    "in1d": np.isin,
    "asscalar": lambda array: array.item(),
}


class _OldNumPy(ModuleType):
    """NumPy with removed names."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(np, name)
        except AttributeError:
            if name not in REMOVED_NAMES:
                raise
            return REMOVED_NAMES[name]


@contextmanager
def lend_numpy_names() -> Iterator[None]:
    """Return a scope that adds removed names to NumPy."""
    lent = [name for name in REMOVED_NAMES if name not in vars(np) and not _has(name)]
    for name in lent:
        setattr(np, name, REMOVED_NAMES[name])
    try:
        yield
    finally:
        for name in lent:
            delattr(np, name)


def _has(name: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hasattr(np, name)


_old_numpy = _OldNumPy("numpy", np.__doc__)


def restore_numpy_names(module: ModuleType) -> None:
    """Replace the global ``np`` (or ``numpy``) of a module by a NumPy that has the old names.

    NumPy and other modules are not changed.
    """
    for name in ("np", "numpy", "onp", "_np"):
        if vars(module).get(name) is np:
            setattr(module, name, _old_numpy)


# -- GluonCV 0.7 to 0.10, with torch 2 installed --------------------------------------------------


def skip_torch_check(check: ModuleType) -> None:
    """Make ``gluoncv.check._require_pytorch_version`` raise ImportError instead of RuntimeError.

    GluonCV handles an ImportError as missing torch and continues with MXNet; its torch models need
    torch 1.x.
    """
    if not hasattr(check, "_require_pytorch_version"):
        return

    def _require_pytorch_version(*versions: Any) -> NoReturn:
        raise ImportError("GluonCV's torch models need torch 1.x; its MXNet models run without.")

    check._require_pytorch_version = _require_pytorch_version  # type: ignore[attr-defined]
    package = sys.modules.get("gluoncv")
    if package is not None and hasattr(package, "_require_pytorch_version"):
        # `import gluoncv` came before `import mxnet` and has fetched the function already
        package._require_pytorch_version = _require_pytorch_version  # type: ignore[attr-defined]


# -- which packages are adjusted ------------------------------------------------------------------


class Adjustment(NamedTuple):
    """The adjustment of a module: after its import, and around it."""

    after: Callable[[ModuleType], None]
    during: Callable[[], AbstractContextManager] = nullcontext


OLD_NUMPY = Adjustment(restore_numpy_names, lend_numpy_names)
ADJUSTMENTS = {
    "gluoncv.check": Adjustment(skip_torch_check),
    "gluoncv.*": OLD_NUMPY,
    "gluonnlp.*": OLD_NUMPY,
    "gluonts.*": OLD_NUMPY,
    "insightface.*": OLD_NUMPY,
    "mxboard.*": OLD_NUMPY,
    "sockeye.*": OLD_NUMPY,
    "xfer.*": OLD_NUMPY,
}


def install() -> None:
    """Register the adjustments, also for packages that are being imported already."""
    for name, adjustment in ADJUSTMENTS.items():
        call_after_import(name, *adjustment)
