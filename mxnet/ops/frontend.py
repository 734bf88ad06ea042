"""Public functions of operators: namespace, signature and docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from .._process.on_demand import make_on_demand
from ..error import did_you_mean
from . import registry
from .declare import Op
from .documentation import Entry, docstring

# Prefixes that determine an operator's namespace; the first match is used.
NAMESPACES = (
    ("_contrib_", "contrib"),
    ("_linalg_", "linalg"),
    ("_sparse_", "sparse"),
    ("_image_", "image"),
    ("_random_", "random"),
    ("_npx_", None),
    ("_npi_", None),
    ("_np_", None),
    ("_", "_internal"),
)

# Parameters that every function of a namespace has, after the operator's own.
EAGER = (
    Entry(
        "out",
        "NDArray or list of NDArray, optional",
        "Array to write the result into; it is also returned.",
    ),
    Entry("name", "str, optional", "Accepted for compatibility with `mx.sym`; has no effect."),
)
SYMBOLIC = (
    Entry("name", "str, optional", "Name of the node; by default generated."),
    Entry("attr", "dict of str, optional", "Further attributes of the node."),
    Entry("out", "object, optional", "Accepted for compatibility with `mx.nd`; has no effect."),
)


def namespace_of(name: str) -> tuple[str | None, str]:
    """Return the namespace and the short name of a registered name.

    >>> namespace_of("_contrib_box_nms"), namespace_of("relu"), namespace_of("_npi_add")
    (('contrib', 'box_nms'), ('op', 'relu'), (None, '_npi_add'))
    """
    for prefix, home in NAMESPACES:
        if name.startswith(prefix):
            return home, name if home in (None, "_internal") else name[len(prefix) :]
    return "op", name


_KEYWORDS = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD)


@cache
def _parameter(name: str, kind: Any, default: Any, text: str) -> inspect.Parameter:
    """Create a parameter; `text` distinguishes equal defaults such as 1 and True."""
    return inspect.Parameter(name, kind, default=default)


@cache
def signature(op: Op, extras: tuple[str, ...]) -> inspect.Signature:
    """Return the public signature: inputs, attributes, then `extras`."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = []
    if op.variadic is not None:
        parameters.append(inspect.Parameter(op.variadic, inspect.Parameter.VAR_POSITIONAL))
        kind = inspect.Parameter.KEYWORD_ONLY
    shown: dict[str, object] = {i.name: None for i in op.inputs}
    shown |= {a.name: None if a.required else a.default for a in op.attributes.values()}
    shown |= {extra: None for extra in extras if extra not in shown}
    if op.variadic is not None:
        shown.pop(op.variadic, None)
    parameters += [_parameter(n, kind, d, repr(d)) for n, d in shown.items()]
    parameters.append(_KEYWORDS)
    return inspect.Signature(parameters, __validate_parameters__=False)


def set_metadata(function: Any, op: Op, name: str, module: str, array: str) -> Callable:
    """Set name, signature and docstring of a derived function."""
    extras = EAGER if array == "NDArray" else SYMBOLIC
    function.__name__ = function.__qualname__ = name
    function.__doc__ = docstring(op, array, extras)
    function.__signature__ = signature(op, tuple(e.name for e in extras))
    function.__module__ = module
    function.op = op
    return function


def populate_namespaces(
    modules: Mapping[str, ModuleType], root: str, make: Callable[[Op, str], Callable]
) -> None:
    """Fill modules with a function for every registered name.

    `modules` has the namespaces, 'op', and the `root`, which exports public functions too.
    Functions are created on first access. Handwritten functions take precedence; operators declared
    later are added automatically.
    """
    for module in modules.values():
        names = list(getattr(module, "__all__", ()))
        setattr(module, "__all__", names)  # noqa: B010 (type checkers do not know it)
    prefixes = {home: prefix for prefix, home in NAMESPACES if home not in (None, "_internal")}
    for home, module in modules.items():
        if home != root:
            make_on_demand(module, _maker(module, prefixes.get(home, ""), make))
    # The root has the functions of 'op' without leading underscore.
    shared = _maker(modules[root], "", lambda op, name: getattr(modules["op"], name))
    make_on_demand(modules[root], shared)

    homes: dict[str | None, list[ModuleType]] = {
        home: [module] for home, module in modules.items() if home != root
    }
    homes["op"].append(modules[root])

    def list_name(name: str, op: Op) -> None:
        home, short = namespace_of(name)
        for module in homes.get(home, ()):
            module.__all__.append(short)

    registry.watch(list_name)


def _maker(
    module: ModuleType, prefix: str, make: Callable[[Op, str], Callable]
) -> Callable[[str], Callable]:
    """Return the function that creates a module's function by name."""

    def find(name: str) -> Callable:
        op = None if name.startswith("__") else registry.find(prefix + name)
        if op is None:
            # No name= and obj=: Python's traceback would suggest the nearest name once more.
            hint = "" if name.startswith("_") else did_you_mean(name, module.__all__)
            raise AttributeError(
                f"module {module.__name__!r} has no attribute {name!r}. {hint}".rstrip()
            )
        return make(op, name)

    return find


def as_method(function: Any, owner: str) -> Callable:
    """Convert a derived function to a method, with self as first parameter."""
    extras = SYMBOLIC if "attr" in function.__signature__.parameters else EAGER
    function.__qualname__ = f"{owner}.{function.__name__}"
    function.__doc__ = docstring(function.op, owner, extras, skip=1)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = list(function.__signature__.parameters.values())[1:]
    function.__signature__ = inspect.Signature([first, *rest], __validate_parameters__=False)
    return function
