"""Linear algebra on the last two axes."""

from . import factorizations, parts, products
