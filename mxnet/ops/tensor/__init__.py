"""Operators on tensors: maths, shapes, indices, creation."""

from . import (
    arithmetic,
    broadcasting,
    comparison,
    creation,
    elementwise,
    indexing,
    joining,
    many_arrays,
    ordering,
    passing,
    patches,
    products,
    reduce,
    scattering,
    shape_changing,
    slicing,
)

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
