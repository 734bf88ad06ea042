"""``F`` of composites on symbols."""

from __future__ import annotations

from ..composites.namespace import OperatorNamespace
from .codegen import make_function
from .symbol import Symbol

F = OperatorNamespace(Symbol, make_function, is_symbolic=True)
