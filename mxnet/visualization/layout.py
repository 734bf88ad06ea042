"""A layered layout: inputs on top, every box below those it reads, few crossings.

Long arrows get a place of their own in each layer that they pass, so they go around boxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from .picture import Arrow, Picture

GAP = 24.0  # between neighbors
PASSAGE = 16.0  # width of an arrow that passes a layer
SWEEPS = 6

Key = str | tuple[int, int]  # a box, or the passage of arrow number i through layer number j


class Layout(NamedTuple):
    """Where things are: x of every place, the layer of every box, the places of every arrow."""

    x: dict[Key, float]
    layer: dict[str, int]
    paths: list[list[Key]]
    width: float


def layered(shown: Picture, widths: dict[str, float]) -> Layout:
    """Return a layout for boxes of the given widths."""
    layer = _layers(shown)
    depth = max(layer.values(), default=0) + 1
    rows: list[list[Key]] = [[] for _ in range(depth)]
    for box in shown.boxes:
        rows[layer[box.key]].append(box.key)
    paths = [_path(i, a, layer, rows) for i, a in enumerate(shown.arrows)]
    above, below = _neighbors(paths)
    _order(rows, above, below)
    width_of = {k: widths[k] if isinstance(k, str) else PASSAGE for row in rows for k in row}
    x = _place(rows, above, below, width_of)
    left = min((x[k] - width_of[k] / 2 for k in x), default=0.0)
    right = max((x[k] + width_of[k] / 2 for k in x), default=0.0)
    return Layout({k: v - left for k, v in x.items()}, layer, paths, right - left)


def _layers(shown: Picture) -> dict[str, int]:
    """Return for each box how many steps it is from the inputs; inputs stand above their user."""
    sources: dict[str, list[str]] = {}
    users: dict[str, list[str]] = {}
    for arrow in shown.arrows:
        sources.setdefault(arrow.target, []).append(arrow.source)
        users.setdefault(arrow.source, []).append(arrow.target)
    layer: dict[str, int] = {}
    for box in shown.boxes:  # they come in topological order
        layer[box.key] = max((layer[s] + 1 for s in sources.get(box.key, ())), default=0)
    for box in shown.boxes:
        if box.is_input and box.key in users:
            layer[box.key] = min(layer[u] for u in users[box.key]) - 1
    return layer


def _path(number: int, arrow: Arrow, layer: dict[str, int], rows: list[list[Key]]) -> list[Key]:
    path: list[Key] = [arrow.source]
    for j in range(layer[arrow.source] + 1, layer[arrow.target]):
        rows[j].append((number, j))
        path.append((number, j))
    return [*path, arrow.target]


def _neighbors(paths: Sequence[Sequence[Key]]) -> tuple[dict[Key, list], dict[Key, list]]:
    above: dict[Key, list[Key]] = {}
    below: dict[Key, list[Key]] = {}
    for path in paths:
        for upper, lower in pairwise(path):
            above.setdefault(lower, []).append(upper)
            below.setdefault(upper, []).append(lower)
    return above, below


def _order(rows: list[list[Key]], above: dict, below: dict) -> None:
    """Sort each row by the mean place of its neighbors, down and up again."""
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        todo = pairwise(rows) if down else pairwise(rows[::-1])
        near = above if down else below
        for fixed, row in todo:
            place = {k: i for i, k in enumerate(fixed)}
            own = {k: i for i, k in enumerate(row)}
            row.sort(key=lambda k, p=place, o=own, n=near: _mean(n.get(k, ()), p, o[k]))


def _mean(neighbors: Sequence[Key], place: Mapping[Key, float], default: float) -> float:
    found = [place[n] for n in neighbors if n in place]
    return sum(found) / len(found) if found else default


def _place(
    rows: list[list[Key]], above: dict, below: dict, width: dict[Key, float]
) -> dict[Key, float]:
    """Return x of every place: near its neighbors, in the order of the row, without overlap."""
    x: dict[Key, float] = {}
    for row in rows:
        _spread(row, [0.0] * len(row), width, x)
    for sweep in range(SWEEPS):
        near = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            _spread(row, [_mean(near.get(k, ()), x, x[k]) for k in row], width, x)
    return x


def _spread(row: list[Key], wanted: list[float], width: dict[Key, float], x: dict) -> None:
    """Put a row as near as it can be to where its members want to be."""
    steps = [(width[a] + width[b]) / 2 + GAP for a, b in pairwise(row)]
    from_left = _pushed(wanted, steps)
    from_right = [-v for v in _pushed([-w for w in wanted[::-1]], steps[::-1])][::-1]
    for key, a, b in zip(row, from_left, from_right, strict=True):
        x[key] = (a + b) / 2


def _pushed(wanted: list[float], steps: list[float]) -> list[float]:
    placed: list[float] = []
    for i, want in enumerate(wanted):
        placed.append(want if i == 0 else max(want, placed[-1] + steps[i - 1]))
    return placed
