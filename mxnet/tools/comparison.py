"""Runs two models on the same inputs and reports how far their outputs differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .models import Model, Shapes

Arrays = dict[str, np.ndarray]
Run = Callable[[Arrays], list[np.ndarray]]

RANDOM_CASES = 3
EDGES = {"zeros": 0.0, "ones": 1.0, "minus ones": -1.0, "small": 1e-6, "large": 100.0}


class Difference(NamedTuple):
    """The largest errors of one output over all inputs, and the input that is the worst."""

    output: str
    absolute: float
    relative: float
    is_within: bool
    worst_input: str


def make_inputs(
    model: Model, shapes: Shapes, dtypes: dict[str, np.dtype], seed: int
) -> Iterator[tuple[str, Arrays]]:
    """Give random inputs and edge cases, with a name for each.

    Inputs that are indices of an embedding are whole numbers within its range.
    """
    random = np.random.default_rng(seed)
    ranges = index_ranges(model)
    names = [name for name in model.inputs if name in shapes]

    def indices(name: str) -> np.ndarray:
        return random.integers(0, ranges[name], shapes[name]).astype(dtypes[name])

    for i in range(RANDOM_CASES):
        made = {
            name: indices(name)
            if name in ranges
            else random.standard_normal(shapes[name]).astype(dtypes[name])
            for name in names
        }
        yield f"random {i + 1}", made
    for edge, value in EDGES.items():
        made = {
            name: indices(name) if name in ranges else np.full(shapes[name], value, dtypes[name])
            for name in names
        }
        yield edge, made


def index_ranges(model: Model) -> dict[str, int]:
    """Return how many values each input has that selects rows of a table."""
    found: dict[str, int] = {}
    for node in model.symbol._graph.nodes:
        if node.op is None or not node.typed.get("input_dim"):
            continue
        for role, entry in zip(node.input_names, node.inputs, strict=True):
            if entry.node.op is None and role == "data":
                found[entry.node.name] = int(node.typed["input_dim"])
    return found


def compare(
    names: list[str],
    cases: list[tuple[str, Arrays]],
    left: Run,
    right: Run,
    *,
    atol: float,
    rtol: float,
) -> list[Difference]:
    """Return the largest differences of each output of the right model from the left one."""
    worst = {name: Difference(name, 0.0, 0.0, True, "") for name in names}
    for case, inputs in cases:
        ours, theirs = left(inputs), right(inputs)
        for name, a, b in zip(names, ours, theirs, strict=True):
            found = difference(name, case, a, b, atol, rtol)
            known = worst[name]
            is_worse = not known.worst_input or found.absolute > known.absolute
            worst[name] = Difference(
                name,
                max(known.absolute, found.absolute),
                max(known.relative, found.relative),
                known.is_within and found.is_within,
                case if is_worse else known.worst_input,
            )
    return list(worst.values())


def difference(
    name: str, case: str, a: np.ndarray, b: np.ndarray, atol: float, rtol: float
) -> Difference:
    """Return how far two outputs differ; values that are not finite must be the same."""
    if a.shape != b.shape:
        return Difference(name, float("inf"), float("inf"), False, f"{case}: {a.shape}, {b.shape}")
    a, b = a.astype(np.float64), b.astype(np.float64)
    is_finite = np.isfinite(a) & np.isfinite(b)
    same = is_finite | (a == b) | (np.isnan(a) & np.isnan(b))
    if not same.all():
        return Difference(name, float("inf"), float("inf"), False, case)
    a, b = a[is_finite], b[is_finite]
    if not a.size:
        return Difference(name, 0.0, 0.0, True, case)
    errors = np.abs(a - b)
    sizes = np.maximum(np.abs(a), np.finfo(np.float32).tiny)
    is_within = bool((errors <= atol + rtol * np.abs(a)).all())
    # Relative errors of values that are zero but for rounding say nothing.
    relative = np.where(errors <= atol * 1e-3, 0.0, errors / sizes)
    return Difference(name, float(errors.max()), float(relative.max()), is_within, case)
