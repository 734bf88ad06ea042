"""Plots of the results: ratios of all rows, and cost against size."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from statistics import median
from typing import Any

from benchmarks.results import ENGINES, GROUPS, OWN, Cells, Result, Results, compare, rows_of
from benchmarks.rows import Row

COLORS = {"MXNext": "#1f77b4", "MXNext auto": "#8fbfe0", "torch": "#ee4c2c", "MXNet": "#7f7f7f"}
BARS = {"own kernels / best other": "#1f77b4", "engines / best other": "#8fbfe0"}
BARS["own kernels / MXNet"] = "#7f7f7f"


def _ratios(row: Row, cells: Cells) -> dict[str, float]:
    """Return the ratios to the fastest engine named in the goal, and to MXNet."""
    pairs = zip(BARS, (compare(row, cells, OWN), compare(row, cells, ENGINES)), strict=False)
    results = {name: pair[1] for name, pair in pairs if pair is not None}
    if "MXNet" in cells and OWN in cells:
        results["own kernels / MXNet"] = median(cells[OWN]) / median(cells["MXNet"])
    return results


def _list_rows(results: Mapping[str, Result]) -> list[tuple[Row, Cells]]:
    rows = [row for group in GROUPS for row in rows_of(group) if row.name in results]
    return [(row, results[row.name].cells) for row in rows]


def last_machine(results: Results) -> tuple[str, Mapping[str, Result]]:
    """Return the machine with the latest run, by its date; of equal ones the last."""
    dates = {m: max(r.run for r in rows.values()) for m, rows in results.items() if rows}
    machine = max(reversed(dates), key=lambda m: dates[m].split(";")[0], default="")
    return machine, results.get(machine, {})


def draw_ratios(results: Results, path: pathlib.Path) -> None:
    """Draw the ratios of all rows on one machine; left of the line MXNext is faster or smaller."""
    machine, figures = last_machine(results)
    rows = [(row, _ratios(row, cells)) for row, cells in _list_rows(figures) if not row.family]
    rows = [(row, ratios) for row, ratios in rows if ratios][::-1]
    if not rows:
        return
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(8, 0.28 * len(rows) + 1), layout="constrained")
    for (name, color), offset in zip(BARS.items(), (0.27, 0, -0.27), strict=True):
        positions = [i + offset for i, (_, ratios) in enumerate(rows) if name in ratios]
        values = [ratios[name] for _, ratios in rows if name in ratios]
        axes.barh(positions, [v - 1 for v in values], 0.26, left=1, color=color, label=name)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.margins(y=0.01)
    axes.set_xscale("log", base=2)
    axes.set_yticks(range(len(rows)), [row.name for row, _ in rows], fontsize=8)
    axes.set_xticks([1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2, 4], ["1/16", "1/8", "1/4", "1/2", *"124"])
    axes.set_xlabel("ratio of times or memory")
    axes.set_title(machine, fontsize=8)
    axes.legend(loc="lower left", fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_sizes(results: Results, path: pathlib.Path) -> None:
    """Draw cost against size on one machine, a panel for each kind of work."""
    machine, figures = last_machine(results)
    measured = _list_rows(figures)
    families = list(dict.fromkeys(row.family for row, _ in measured if row.family))
    if not families:
        return
    plt = _pyplot()
    figure, panels = plt.subplots(
        1, len(families), figsize=(3 * len(families), 2.8), layout="constrained", squeeze=False
    )
    for axes, family in zip(panels[0], families, strict=True):
        points = [(row.size, cells) for row, cells in measured if row.family == family]
        for name in dict.fromkeys(name for _, cells in points for name in cells):
            curve = [(size, cells[name]) for size, cells in points if name in cells]
            sizes, figures = [size for size, _ in curve], [values for _, values in curve]
            middle = [median(values) * 1e3 for values in figures]
            axes.loglog(sizes, middle, marker="o", label=name, color=COLORS.get(name))
            ends = [min(v) * 1e3 for v in figures], [max(v) * 1e3 for v in figures]
            axes.fill_between(sizes, *ends, color=COLORS.get(name), alpha=0.15)
        axes.set_title(family, fontsize=9)
        axes.grid(alpha=0.3)
    figure.suptitle(machine, fontsize=8)
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
