"""NumPy semantics as operators: the ``_np_``, ``_npi_`` and ``_npx_`` names of MXNet."""

from . import creation, extension, random, selecting
from .math import arithmetic, comparison, elementwise, linalg, products, reduce, statistics
from .shaping import diagonal, editing, joining, reshaping

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
