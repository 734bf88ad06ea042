"""NumPy semantics as operators: the ``_np_``, ``_npi_`` and ``_npx_`` names of MXNet."""

from . import (
    arithmetic,
    comparison,
    creation,
    elementwise,
    extension,
    joining,
    reduce,
    reshaping,
)

__all__ = [
    "arithmetic",
    "comparison",
    "creation",
    "elementwise",
    "extension",
    "joining",
    "reduce",
    "reshaping",
]
