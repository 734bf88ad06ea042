"""Selection of the dynamic sizes of a converted file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..error import InvalidValue
from .source import Model

Sizes = dict[str, tuple]  # shapes by the inputs' names, with a name in place of each free size
BATCH = "batch"
FIXED_BY_GRAPH = "the graph and its parameters take no other size"
NOT_REQUESTED = "--dynamic (dynamic_shapes=) would leave them free"


def choose_sizes(source: Model, requested: Any) -> list[Sizes]:
    """Return the sizes to try in order; if the last fails, the conversion raises an error.

    Shapes list all dynamic sizes. With axes, or by default, the batch is dynamic if the model
    supports it.
    """
    shapes = source.input_shapes
    if requested is not None and not isinstance(requested, Mapping):
        if len(requested) != len(shapes):
            raise InvalidValue(
                f"dynamic_shapes has {len(requested)} shapes for the inputs {', '.join(shapes)}."
            )
        requested = dict(zip(shapes, requested, strict=True))
    requested = requested or {}
    sizes = {n: _name_sizes(n, s, requested.get(n, {})) for n, s in shapes.items()}
    unknown = sorted(set(requested) - set(shapes))
    if unknown:
        raise InvalidValue(f"dynamic sizes of {unknown[0]!r}: the inputs are {', '.join(shapes)}.")
    if not _may_vary(source, sizes):
        text = "; ".join(f"{n} ({', '.join(map(str, s))})" for n, s in sizes.items())
        raise InvalidValue(f"sizes cannot be free as requested, {text}: {FIXED_BY_GRAPH}.")
    if any(not isinstance(each, Mapping) for each in requested.values()):
        return [sizes]
    with_batch = _free_batch(shapes, sizes)
    if with_batch == sizes or not _may_vary(source, with_batch):
        return [sizes]
    return [with_batch, sizes]


def _name_sizes(name: str, shape: tuple, requested: Mapping | Sequence) -> tuple:
    """Return a shape with names, from axes with names or from the whole shape."""
    if not isinstance(requested, Mapping):
        if len(requested) != len(shape):
            raise InvalidValue(
                f"dynamic_shapes: {tuple(requested)} is given for {name}, whose shape is {shape}."
            )
        return tuple(requested)
    wrong = [axis for axis in requested if not 0 <= axis < len(shape)]
    if wrong:
        raise InvalidValue(f"dynamic sizes of {name!r}: its shape {shape} has no axis {wrong[0]}.")
    return tuple(requested.get(axis, size) for axis, size in enumerate(shape))


def _free_batch(shapes: Mapping[str, tuple], sizes: Sizes) -> Sizes:
    """Return sizes with a free batch: the first size, in all inputs in which it is the same."""
    first = next((shape[0] for shape in shapes.values() if shape), None)
    return {
        name: (BATCH, *size[1:]) if shape and shape[0] == first == size[0] else size
        for (name, shape), size in zip(shapes.items(), sizes.values(), strict=True)
    }


def has_free_sizes(sizes: Sizes) -> bool:
    """Return whether any size is free."""
    return any(not isinstance(n, int) for shape in sizes.values() for n in shape)


def other_shapes(source: Model, sizes: Sizes) -> dict[str, tuple]:
    """Return shapes that differ in each free size, such as MXNet's graph takes if there are."""
    larger = _enlarge(source, sizes, lambda n: n + 1)
    return larger if source.takes(larger) else _enlarge(source, sizes, lambda n: 2 * n)


def _enlarge(source: Model, sizes: Sizes, larger: Any) -> dict[str, tuple]:
    return {
        name: tuple(
            n if isinstance(s, int) else larger(n) for n, s in zip(shape, size, strict=True)
        )
        for (name, shape), size in zip(source.input_shapes.items(), sizes.values(), strict=True)
    }


def _may_vary(source: Model, sizes: Sizes) -> bool:
    """Return whether MXNet's graph takes twice the free sizes, as far as shapes are inferred."""
    doubled = _enlarge(source, sizes, lambda n: 2 * n)
    return source.takes(doubled) or not source.takes(source.input_shapes)


def describe_sizes(source: Model, sizes: Sizes, reason: str | None) -> list[str]:
    """Return a line for each input: its sizes, and why some are frozen.

    `reason` is why the batch could not be left free, if that was tried.
    """
    lines = []
    shapes = source.input_shapes
    batch = _free_batch(shapes, dict(shapes))
    for name, size in sizes.items():
        axes: dict[str, list[int]] = {}
        for axis in (i for i, n in enumerate(size) if isinstance(n, int)):
            if axis == 0 and batch[name][0] == BATCH:
                why = reason or _reason(source, batch)
            else:
                one = (*shapes[name][:axis], BATCH, *shapes[name][axis + 1 :])
                why = _reason(source, {**shapes, name: one})
            axes.setdefault(why, []).append(axis)
        line = f"sizes of {name}: ({', '.join(map(str, size))})"
        for why, frozen in axes.items():
            word = "axis" if len(frozen) == 1 else "axes"
            line += f"; fixed {word} {', '.join(map(str, frozen))}: {why}"
        lines.append(line)
    return lines


def _reason(source: Model, sizes: Sizes) -> str:
    return NOT_REQUESTED if _may_vary(source, sizes) else FIXED_BY_GRAPH
