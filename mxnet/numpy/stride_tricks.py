"""MXNet's module of `broadcast_arrays`."""

from __future__ import annotations

from ..runtime.composites.namespace import bind
from .codegen.functions import GLOSSARY
from .codegen.namespaces import eager
from .composites import shaping

__all__ = ["broadcast_arrays"]

broadcast_arrays = bind(shaping.broadcast_arrays, eager, __name__, glossary=GLOSSARY)
