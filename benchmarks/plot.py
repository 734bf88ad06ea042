"""Draw what `benchmarks.table` measured: ratios to other engines, and cost against size."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.row import Row

Measured = Sequence[tuple[Row, Mapping[str, float]]]
COLORS = {"MXNext": "#1f77b4", "torch": "#ee4c2c", "MXNet": "#7f7f7f"}


def _ours(best: Mapping[str, float]) -> float | None:
    return min((v for n, v in best.items() if n.startswith("MXNext")), default=None)


def _ratios(best: Mapping[str, float]) -> dict[str, float]:
    """Return our time by that of the best other engine, and by MXNet's."""
    ours = _ours(best)
    if ours is None:
        return {}
    others = {n: v for n, v in best.items() if not n.startswith(("MXNext", "MXNet"))}
    found = {"best other": ours / min(others.values())} if others else {}
    if "MXNet" in best:
        found["MXNet"] = ours / best["MXNet"]
    return found


def draw_ratios(measured: Measured, path: pathlib.Path) -> None:
    """Write a picture of the ratios of all rows; left of the line MXNext is faster or smaller."""
    rows = [(row, _ratios(best)) for row, best in measured if not row.family]
    rows = [(row, found) for row, found in rows if found][::-1]
    if not rows:
        return
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(8, 0.28 * len(rows) + 1), layout="constrained")
    for name, color, offset in (("best other", "#1f77b4", 0.2), ("MXNet", "#7f7f7f", -0.2)):
        places = [i + offset for i, (_, found) in enumerate(rows) if name in found]
        values = [found[name] for _, found in rows if name in found]
        axes.barh(places, [v - 1 for v in values], 0.38, left=1, color=color, label=name)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.margins(y=0.01)
    axes.set_xscale("log", base=2)
    axes.set_yticks(range(len(rows)), [row.name for row, _ in rows], fontsize=8)
    axes.set_xticks([1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4], ["1/16", "1/8", "1/4", "1/2", *"124"])
    axes.set_xlabel("MXNext's time or memory, divided by that of")
    axes.legend(loc="lower left", fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_sizes(measured: Measured, path: pathlib.Path) -> None:
    """Write a picture of cost against size, a panel for each kind of work."""
    families = list(dict.fromkeys(row.family for row, _ in measured if row.family))
    if not families:
        return
    plt = _pyplot()
    figure, panels = plt.subplots(
        1, len(families), figsize=(3 * len(families), 2.8), layout="constrained", squeeze=False
    )
    for axes, family in zip(panels[0], families, strict=True):
        points = [(row.size, best) for row, best in measured if row.family == family]
        for name in dict.fromkeys(n for _, best in points for n in best):
            known = [(size, best[name] * 1e3) for size, best in points if name in best]
            axes.loglog(*zip(*known, strict=True), marker="o", label=name, color=COLORS.get(name))
        axes.set_title(family, fontsize=9)
        axes.grid(alpha=0.3)
    panels[0][0].set_ylabel("ms")
    panels[0][0].legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "mxnext"  # the same figures make the same file
    import matplotlib.pyplot as plt

    return plt
