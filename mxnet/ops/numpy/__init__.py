"""NumPy semantics as operators: the ``_np_``, ``_npi_`` and ``_npx_`` names of MXNet."""

from . import (
    arithmetic,
    comparison,
    creation,
    diagonal,
    editing,
    elementwise,
    extension,
    joining,
    linalg,
    products,
    random,
    reduce,
    reshaping,
    selecting,
    statistics,
)

__all__ = [
    "arithmetic",
    "comparison",
    "creation",
    "diagonal",
    "editing",
    "elementwise",
    "extension",
    "joining",
    "linalg",
    "products",
    "random",
    "reduce",
    "reshaping",
    "selecting",
    "statistics",
]
