"""Operators on tensors: math, shapes, indices, creation."""

from . import creation, passing
from .math import arithmetic, comparison, elementwise, many_arrays, products, reduce
from .selection import indexing, ordering, scattering, slicing
from .shaping import broadcasting, joining, patches, shape_changing

__all__ = [
    "arithmetic",
    "broadcasting",
    "comparison",
    "creation",
    "elementwise",
    "indexing",
    "joining",
    "many_arrays",
    "ordering",
    "passing",
    "patches",
    "products",
    "reduce",
    "scattering",
    "shape_changing",
    "slicing",
]
