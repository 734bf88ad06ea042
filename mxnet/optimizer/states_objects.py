"""Objects of the program's own classes in optimizer states, such as what a scheduler holds.

A file may say which class an object has and what its fields are, never what is to be run. So an
object comes back from a file only if its class is one of the program itself and has no code that
runs when objects are made, copied or deleted. Of everything else that a scheduler may hold
(functions, objects of installed packages) the file has only the name; the object comes from the
optimizer that the program made before it loads.
"""

from __future__ import annotations

import abc
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from ..error import FormatError
from ..lr_scheduler import LRScheduler
from .base import Optimizer

HEAP_TYPE = 1 << 9  # a class that Python code defined
RUN_BY_PICKLE = frozenset(
    ("__new__", "__del__", "__reduce__", "__reduce_ex__", "__getstate__", "__setstate__")
)
STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
INSTALLED = frozenset(("site-packages", "dist-packages"))
REFERENCES = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


class Named(NamedTuple):
    """Stands for an object that a file does not hold: the names of its class, or its own."""

    module: str
    name: str

    @classmethod
    def of(cls, value: Any) -> Named:
        """Return what stands for an object."""
        named = value if hasattr(value, "__qualname__") else type(value)
        return cls(str(named.__module__), str(named.__qualname__))


def is_data(kind: type) -> bool:
    """Return whether objects of a class are their fields: made without running anything.

    >>> is_data(type("Pair", (), {})), is_data(dict)
    (True, False)
    """
    if type(kind) not in (type, abc.ABCMeta) or not kind.__dictoffset__:
        return False
    return all(
        base.__flags__ & HEAP_TYPE
        and not base.__dict__.get("__slots__")
        and RUN_BY_PICKLE.isdisjoint(base.__dict__)
        for base in kind.__mro__[:-1]
    )


def program_class(module: str, name: str) -> type | None:
    """Return the class of this name whose objects may come from files, None if there is none."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, "__dict__", {}).get(part)  # getattr might run something
    if not isinstance(found, type) or (found.__module__, found.__qualname__) != (module, name):
        return None
    return found if is_data(found) and _is_of_program(module) else None


def _is_of_program(module: str) -> bool:
    """Return whether a module is the program's: not installed, or the home of such a class."""
    if module == "__main__":
        return True
    package = module.partition(".")[0]
    if package == __name__.partition(".")[0] or package in sys.stdlib_module_names:
        return False
    kinds = (*subclasses(Optimizer), *subclasses(LRScheduler))
    if any(kind.__module__.partition(".")[0] == package for kind in kinds):
        return True
    file = getattr(sys.modules[module], "__file__", None)
    if file is None or STANDARD_LIBRARY in Path(file).parents:
        return False
    return INSTALLED.isdisjoint(Path(file).parts)


def subclasses(base: type) -> Iterator[type]:
    """Return all classes that inherit from one."""
    for kind in base.__subclasses__():
        yield kind
        yield from subclasses(kind)


def resolve(read: Any, live: Any, place: str = "") -> Any:
    """Return what was read, with the program's objects where the file has their names.

    Parameters
    ----------
    read
        A value from a file.
    live
        What the program has in its place.
    place
        Where it is, for messages.
    """
    if isinstance(read, Named):
        if live is None or Named.of(live) != read:
            raise FormatError(_advice(place.lstrip("."), read))
        if not isinstance(live, REFERENCES):
            warnings.warn(
                f"{place.lstrip('.')} keeps what the program gave it: files of optimizer states "
                f"do not hold objects of {read.module}.{read.name}.",
                stacklevel=2,
            )
        return live
    if isinstance(read, dict):
        others = live if isinstance(live, dict) else {}
        read.update({k: resolve(v, others.get(k), f"{place}[{k!r}]") for k, v in read.items()})
    elif isinstance(read, list | tuple):
        same = isinstance(live, list | tuple) and len(live) == len(read)
        pairs = zip(read, live if same else [None] * len(read), strict=True)
        made = [resolve(v, other, f"{place}[{i}]") for i, (v, other) in enumerate(pairs)]
        if isinstance(read, tuple):
            return tuple(made)
        read[:] = made
    elif isinstance(read, Optimizer | LRScheduler) or is_data(type(read)):
        others = getattr(live, "__dict__", {})
        fields = vars(read)
        fields.update({k: resolve(v, others.get(k), f"{place}.{k}") for k, v in fields.items()})
    return read


def _advice(place: str, missing: Named) -> str:
    return (
        f"Optimizer states: {place or 'a state'} was {missing.module}.{missing.name}, which files "
        "do not hold: only numbers, text, arrays, containers, and objects of the program's own "
        "classes that have no code for being copied or deleted. Make the optimizer with the same "
        "lr_scheduler as when the states were saved, then load them. Nothing was run."
    )
