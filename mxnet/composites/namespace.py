"""`OperatorNamespace`, the ``F`` of composites, and `bind`, which fills it in."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from ..ops import registry
from ..ops.declare import Op


class OperatorNamespace:
    """All registered operators as functions of one kind of array: ``F.broadcast_add(x, y)``.

    Parameters
    ----------
    array_class : the class of its arrays or symbols.
    make : returns the function of an operator.
    is_symbolic : whether its arrays are symbols, whose shapes and values are not known yet.
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
    composite: Callable, F: OperatorNamespace, module: str, omit: tuple[str, ...] = ()
) -> Callable:
    """Return a composite for one namespace, without the parameters that have no sense there.

    >>> def scale(F, x, factor=2):
    ...     return factor * x
    >>> bind(scale, None, "example")(3)
    6
    """

    @functools.wraps(composite)
    def function(*args: Any, **kwargs: Any) -> Any:
        return composite(F, *args, **kwargs)

    parameters = list(inspect.signature(composite).parameters.values())[1:]
    kept = [p for p in parameters if p.name not in omit]
    function.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
    function.__module__ = module
    del function.__wrapped__  # type: ignore[attr-defined]
    return function
