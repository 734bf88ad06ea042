"""Operators on tensors: math, shapes, indices, creation."""

from . import (
    arithmetic,
    broadcasting,
    creation,
    elementwise,
    indexing,
    joining,
    passing,
    products,
    reduce,
    scattering,
    shape_changing,
    slicing,
)
