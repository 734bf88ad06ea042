"""`OperatorNamespace`, the ``F`` of composites, and `bind`, which fills it in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from types import ModuleType
from typing import Any

from ...ops import registry
from ...ops.declare import Op
from ...ops.documentation import COMMON, FOLDERS, complete

_OF_SAMPLES = " An array gives samples for each of its elements."

# Descriptions of parameters that all composites share.
GLOSSARY = {
    **FOLDERS["training"],
    # distributions
    "low": f"Lower bound.{_OF_SAMPLES}",
    "high": f"Upper bound, which is left out.{_OF_SAMPLES}",
    "loc": f"Mean of the distribution.{_OF_SAMPLES}",
    "scale": f"Standard deviation of the distribution.{_OF_SAMPLES}",
    "mu": f"Mean of the distribution.{_OF_SAMPLES}",
    "alpha": f"Shape of the distribution.{_OF_SAMPLES}",
    "beta": f"Scale of the distribution.{_OF_SAMPLES}",
    "lam": f"Mean of the distribution.{_OF_SAMPLES}",
    "k": f"Number of successes to wait for.{_OF_SAMPLES}",
    "p": f"Probability of a success.{_OF_SAMPLES}",
    "shape": "Shape of the result, or of the samples for each element of array parameters.",
    "*shape": "Sizes of the result, one by one; none means one sample.",
    "dtype": "Data type of the samples; float32 by default.",
    "ctx": "Device of the samples; by default the current one.",
    "out": "Array that receives the result; its shape and data type count.",
    "name": "Name of the node, for symbols.",
    "get_prob": "Whether to return the logarithm of the drawn probabilities too.",
    # candidate sampling
    "true_classes": "Classes of the samples.",
    "num_sampled": "Number of classes to draw.",
    "range_max": "Number of classes.",
    # splits
    "ary": "The array to split.",
    "indices_or_sections": "Number of equal parts, or the indices that the parts begin at.",
    # updates of many weights
    "weights": "The weights.",
    "grads": "Their gradients.",
    "weights32": "The 32-bit copies of the weights, updated in place.",
    "size": "Number of weights; by default all that are given.",
}


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
    F: OperatorNamespace | ModuleType | None,
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
        The namespace; methods of arrays take a module of functions.
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
    by_keyword = False  # parameters after an omitted one are passed by keyword
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
    function = values[composite.__name__]
    function.__doc__ = _docstring(composite, parameters, omit, glossary)
    function.__module__ = module
    return function


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
    """Return the complete docstring, created once for arrays and symbols."""
    key = (composite, omit)
    if key not in _docstrings:
        _docstrings[key] = complete(composite.__doc__ or "", parameters, glossary, COMMON)
    return _docstrings[key]
