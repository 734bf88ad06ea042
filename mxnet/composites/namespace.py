"""`OperatorNamespace`, the ``F`` of composites, and `bind`, which fills it in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from ..ops import registry
from ..ops.declare import Op
from ..ops.documentation import COMMON, complete
from .glossary import GLOSSARY


class OperatorNamespace:
    """All registered operators as functions of one kind of array: ``F.broadcast_add(x, y)``.

    Parameters
    ----------
    array_class
        The class of its arrays or symbols.
    make
        Returns the function of an operator.
    is_symbolic
        Whether its arrays are symbols, whose shapes and values are not known yet.
    """

    def __init__(
        self,
        array_class: type,
        make: Callable[[Op, str], Callable],
        is_symbolic: bool = False,
    ) -> None:
        self.array_class = array_class
        self.is_symbolic = is_symbolic
        self._make = make

    def __getattr__(self, name: str) -> Callable:
        op = None if name.startswith("__") else registry.find(name)
        if op is None:
            raise AttributeError(f"Operator {name!r} is not registered.", name=name, obj=self)
        function = self._make(op, name)
        setattr(self, name, function)
        return function

    def is_array(self, value: Any) -> bool:
        """Return whether a value is an array (or a symbol) of this namespace."""
        return isinstance(value, self.array_class)


def bind(
    composite: Callable,
    F: OperatorNamespace | None,
    module: str,
    omit: tuple[str, ...] = (),
    glossary: Mapping[str, str] = GLOSSARY,
) -> Callable:
    """Return a composite for one namespace, with a real signature and a complete docstring.

    Parameters
    ----------
    composite
        The function; its first parameter is the namespace.
    F
        The namespace.
    module
        Name of the module that shows the function.
    omit
        Parameters that have no meaning in this namespace; they keep their defaults.
    glossary
        Sentences for parameters that the composite's own docstring does not explain.

    >>> def scale(F, x, factor=2):
    ...     return factor * x
    >>> bind(scale, None, "example")(3)
    6
    """
    every = _parameters(composite)
    parameters = [p for p in every if p.name not in omit]
    values: dict[str, Any] = {"_function": composite, "_space": F}
    declared, passed = [], ["_space"]
    keyword_only = False
    by_keyword = False  # what follows an omitted parameter
    for p in every:
        if p.name in omit:
            by_keyword = True
            continue
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            if not any(q.kind is q.VAR_POSITIONAL for q in parameters):
                declared.append("*")
            keyword_only = True
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        default = ""
        if p.default is not p.empty:
            values[f"_{p.name}"] = p.default
            default = f"=_{p.name}"
        declared.append(f"{prefix}{p.name}{default}")
        named = (keyword_only or by_keyword) and not prefix
        passed.append(f"{p.name}={p.name}" if named else prefix + p.name)
    source = (
        f"def {composite.__name__}({', '.join(declared)}):\n"
        f"    return _function({', '.join(passed)})\n"
    )
    exec(compile(source, f"<{module}.{composite.__name__}>", "exec"), values)
    made = values[composite.__name__]
    made.__doc__ = _docstring(composite, parameters, omit, glossary)
    made.__module__ = module
    return made


@cache
def _parameters(composite: Callable) -> list[inspect.Parameter]:
    return list(inspect.signature(composite).parameters.values())[1:]


_docstrings: dict[tuple, str] = {}


def _docstring(
    composite: Callable,
    parameters: list[inspect.Parameter],
    omit: tuple[str, ...],
    glossary: Mapping[str, str],
) -> str:
    """Return the complete docstring, made once for arrays and symbols."""
    key = (composite, omit)
    if key not in _docstrings:
        _docstrings[key] = complete(composite.__doc__ or "", parameters, glossary, COMMON)
    return _docstrings[key]
