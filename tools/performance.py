"""Write the page of performance, with its plots, from the figures in `benchmarks/results.json`.

The site builds it (`tools/site_hooks.py`), so its numbers are those of the last measurement.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from benchmarks.plots import draw_sizes, last_machine
from benchmarks.results import ENGINES, GROUPS, OWN, Cells, Result, load, rows_of
from benchmarks.results import render as render_table

__all__ = ["PATH", "list_ratios", "render"]

PATH = "performance.md"
BEST_ENGINES = ("onnxruntime", "openvino")
HEAD = """\
# Performance

A ratio is MXNext's time, or memory, divided by the other's: left of the line, below 1, MXNext is
faster or smaller. [Benchmarks](../benchmarks/README.md) explains how it is measured; `make bench`
measures your machine.

{runs}

## Our own kernels

Compared with the fastest form of PyTorch that was measured (eager, channels_last, fused or
compiled) and with MXNet 1.9.1. {faster_torch} of {rows_torch} rows are better than PyTorch's,
{faster_mxnet} of {rows_mxnet} better than MXNet's.

![Our own kernels beside torch and MXNet](performance/own.svg){{ .measured }}

## Engines

`hybridize(backend="auto")` may run OpenVINO or ONNX Runtime itself: that is their speed, not ours,
so it is drawn apart. Both are compared with the better of the two engines, called directly. Our own
kernels are faster than it in {faster_own} of {rows_engines} rows, `auto` in {faster_auto}.

![Own kernels and engines beside ONNX Runtime and OpenVINO](performance/engines.svg){{ .measured }}

## Cost against size

![Cost against size](performance/sizes.svg){{ .measured }}
"""

Bars = dict[str, dict[str, float]]  # ratios by the name of the comparison, then of the row


def list_ratios(
    results: Mapping[str, Result], side: str, peers: Callable[[str], bool]
) -> dict[str, float]:
    """Return the ratio of a side to the fastest of its peers, for each row that has both.

    >>> results = {"20 x add": Result("monday", {"MXNext": [3.0], "torch": [2.0], "MXNet": [6.0]})}
    >>> list_ratios(results, "MXNext", lambda name: name == "torch")
    {'20 x add': 1.5}
    """
    ratios = {}
    for row in (row for group in GROUPS for row in rows_of(group) if not row.family):
        cells: Cells = results[row.name].cells if row.name in results else {}
        others = [median(values) for name, values in cells.items() if peers(name)]
        if others and side in cells:
            ratios[row.name] = median(cells[side]) / min(others)
    return ratios


def render() -> tuple[str, dict[str, str]]:
    """Return the page in Markdown, and its plots as SVG by their paths."""
    machines = load()
    _, results = last_machine(machines)  # the tables have all machines
    torch = list_ratios(results, OWN, lambda name: name.startswith("torch"))
    mxnet = list_ratios(results, OWN, lambda name: name == "MXNet")
    own = list_ratios(results, OWN, lambda name: name in BEST_ENGINES)
    auto = list_ratios(results, ENGINES, lambda name: name in BEST_ENGINES)
    runs = dict.fromkeys(result.run for result in results.values())
    text = HEAD.format(
        runs="\n".join(f"- Measured {run}" for run in runs),
        faster_torch=_count_faster(torch),
        rows_torch=len(torch),
        faster_mxnet=_count_faster(mxnet),
        rows_mxnet=len(mxnet),
        faster_own=_count_faster(own),
        rows_engines=len(own),
        faster_auto=_count_faster(auto),
    )
    plots = {
        "performance/own.svg": _draw_bars({"own kernels / torch": torch, "own / MXNet": mxnet}),
        "performance/engines.svg": _draw_bars({"own kernels / engine": own, "auto / engine": auto}),
        "performance/sizes.svg": _draw(lambda file: draw_sizes(machines, file)),
    }
    tables = render_table(machines).partition("\n## ")[2].replace("\n## ", "\n### ")
    return f"{text}\n## All rows\n\n### {tables}", plots


def _count_faster(ratios: Mapping[str, float]) -> int:
    return sum(ratio < 1 for ratio in ratios.values())


def _draw(write: Callable[[Any], None]) -> str:
    import matplotlib

    matplotlib.use("svg")
    picture = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "mxnext"}):
        write(picture)
    return picture.getvalue()


def _draw_bars(bars: Bars) -> str:
    names = list(dict.fromkeys(name for ratios in bars.values() for name in ratios))[::-1]
    return _draw(lambda file: _save_bars(bars, names, file))


def _save_bars(bars: Bars, names: Sequence[str], file: io.StringIO) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.36 * len(names) + 1), layout="constrained")
    for (label, ratios), color, offset in zip(
        bars.items(), ("#3f51b5", "#9e9e9e"), (0.2, -0.2), strict=True
    ):
        points = [(y + offset, ratios[name]) for y, name in enumerate(names) if name in ratios]
        axes.barh(
            [y for y, _ in points],
            [ratio - 1 for _, ratio in points],
            0.38,
            left=1,
            color=color,
            label=label,
        )
        for y, ratio in points:
            side = "left" if ratio >= 1 else "right"
            axes.text(ratio, y, f" {ratio:.2f} ", ha=side, va="center", fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.margins(x=0.12, y=0.01)
    limits = axes.get_xlim()
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xticks([1 / 16, 1 / 8, 1 / 4, 1 / 2, 1, 2], ["1/16", "1/8", "1/4", "1/2", "1", "2"])
    axes.set_xlim(limits)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.0 + 1.2 / len(names)), ncols=2)
    figure.savefig(file, format="svg", metadata={"Date": None})
    plt.close(figure)
