"""Nested lists of arrays or symbols: flat, grouped again, and compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ndarray import NDArray
from ..symbol import Symbol


def are_arrays(*args: Any) -> bool:
    """Return whether all arguments are arrays, none of them a list."""
    for arg in args:  # noqa: SIM110 (a generator takes longer than the question)
        if not isinstance(arg, NDArray):
            return False
    return True


def flatten(args: Any, inout: str) -> tuple[list, Any]:
    """Return nested lists of arrays or symbols as one flat list, and their structure.

    In the structure an array is 0, None is -1, and a symbol of n outputs is n.
    """
    if isinstance(args, NDArray):
        return [args], 0
    if isinstance(args, Symbol):
        return [args], len(args) if len(args) > 1 else 0
    if args is None:
        return [None], -1
    if not isinstance(args, list | tuple):
        raise ValueError(
            f"When hybridized, the {inout} of HybridBlock must be (nested) list of Symbol or "
            f"NDArray, but got {args} of type {type(args)}"
        )
    flat, structure = [], []
    for item in args:
        items, part = flatten(item, inout)
        flat.extend(items)
        structure.append(part)
    return flat, structure


def regroup(flat: Sequence, structure: Any) -> tuple[Any, list]:
    """Return a flat list as nested lists again, and what is left of it."""
    if isinstance(structure, int):
        if structure <= 0:
            return flat[0], list(flat[1:])
        return list(flat[:structure]), list(flat[structure:])
    grouped, rest = [], list(flat)
    for part in structure:
        item, rest = regroup(rest, part)
        grouped.append(item)
    return grouped, rest


def same_structure(stored: list, given: list) -> bool:
    """Return whether two structures agree; None at the end counts as not given."""
    while stored and stored[-1] == -1:
        stored = stored[:-1]
    while given and given[-1] == -1:
        given = given[:-1]
    return stored == given


def leaves(args: Any) -> list:
    """Return what nested lists hold."""
    if isinstance(args, list | tuple):
        return [leaf for item in args for leaf in leaves(item)]
    return [args]
