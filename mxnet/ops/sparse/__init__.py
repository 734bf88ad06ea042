"""Operators of sparse arrays, and the storage types of results and gradients of all others."""

from . import storage

from . import storage_rules  # isort: skip (its rules are about the operators above)
