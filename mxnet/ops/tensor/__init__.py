"""Operators on tensors: math, shapes, indices, creation."""

from . import (
    arithmetic,
    broadcasting,
    creation,
    elementwise,
    identity,
    indexing,
    joining,
    products,
    reduce,
    scattering,
    shape_changing,
    slicing,
)
