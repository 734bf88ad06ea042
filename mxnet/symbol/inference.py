"""Between what users write and read of shapes and types, and what the passes work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .. import dtypes
from ..base import is_np_shape
from ..error import MXNetError
from ..graph import Graph
from ..graph.passes.infer import Inferred, infer_shapes, infer_types, unknown_for_zero


def shapes(graph: Graph, args: tuple, kwargs: Mapping[str, Any]) -> Inferred:
    """Infer shapes from those given by position (in argument order) or by name."""
    exact = is_np_shape()
    given = {}
    for name, shape in _by_name(graph, args, kwargs, "shapes").items():
        if not isinstance(shape, tuple):
            raise TypeError(f"Arguments need to be shapes (tuple), but '{name}' is {type(shape)}.")
        sizes = tuple(int(n) for n in shape)
        given[name] = tuple(max(n, -1) for n in sizes) if exact else unknown_for_zero(sizes)
    _check_names(graph, kwargs, "InferShape")
    return infer_shapes(graph, given, zero_is_unknown=not exact)


def types(graph: Graph, args: tuple, kwargs: Mapping[str, Any]) -> Inferred:
    """Infer data types from those given by position or by name."""
    given = {
        name: dtypes.to_torch(dtype)
        for name, dtype in _by_name(graph, args, kwargs, "types").items()
    }
    _check_names(graph, kwargs, "InferType")
    return infer_types(graph, given)


def _by_name(graph: Graph, args: tuple, kwargs: Mapping[str, Any], what: str) -> dict[str, Any]:
    if args and kwargs:
        raise ValueError(
            f"Can only specify known argument {what} either by positional or kwargs way."
        )
    if len(args) > len(graph.arguments):
        raise MXNetError(
            f"{len(args)} {what} were given for {len(graph.arguments)} arguments: "
            f"{[n.name for n in graph.arguments]}"
        )
    pairs = zip((n.name for n in graph.arguments), args, strict=False) if args else kwargs.items()
    return {name: value for name, value in pairs if value is not None}


def _check_names(graph: Graph, kwargs: Mapping[str, Any], what: str) -> None:
    known = {n.name for n in graph.variables}
    for name in kwargs:
        if name not in known:
            names = "\n".join(f"\t[{i}]{n.name}" for i, n in enumerate(graph.variables))
            raise MXNetError(
                f"{what}Keyword argument name {name} not found.\nCandidate arguments:\n{names}"
            )


def shown_shape(shape: tuple | None) -> tuple | None:
    """Return a shape as users read it now."""
    if is_np_shape():
        return shape
    return () if shape is None else tuple(max(n, 0) for n in shape)


def shape_lists(found: Inferred) -> tuple[list, list, list]:
    """Return shapes of arguments, outputs and auxiliary states."""
    parts = found.arguments, found.heads, found.auxiliary
    if found.complete:  # nothing is unknown, which users read as 0
        return parts
    arguments, heads, auxiliary = ([shown_shape(s) for s in part] for part in parts)
    return arguments, heads, auxiliary


def type_lists(found: Inferred) -> tuple[list, list, list]:
    """Return NumPy types of arguments, outputs and auxiliary states."""
    parts = found.arguments, found.heads, found.auxiliary
    arguments, heads, auxiliary = ([_numpy_type(t) for t in part] for part in parts)
    return arguments, heads, auxiliary


def _numpy_type(dtype: Any) -> type[np.generic] | None:
    return None if dtype is None else dtypes.to_numpy(dtype)


def unknown_arguments(found: Inferred, show: Callable[[Any], Any]) -> str:
    """Return the lines that name what a user could still specify."""
    lines = [
        f"{node.name}: {show(value)}"
        for node, value in zip(found.graph.arguments, found.arguments, strict=True)
        if value is None or (isinstance(value, tuple) and -1 in value)
    ]
    return "\n\t".join(lines)
