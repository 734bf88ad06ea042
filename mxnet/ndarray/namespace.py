"""``F`` of composites on arrays."""

from __future__ import annotations

from ..composites.namespace import OperatorNamespace
from .codegen import make_function
from .ndarray import NDArray

F = OperatorNamespace(NDArray, lambda op, name: make_function(op, name, NDArray))
