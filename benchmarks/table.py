"""Compare with all peers: ``python -m benchmarks.table --mxnet PYTHON --write``.

Each row is the same work for MXNext, torch, jax, ONNX Runtime, OpenVINO and MXNet 1.9.1, as far
as they are installed. Sides take turns within a row, and the best of the rounds counts. Rows are
printed as they come; ``--write`` keeps them in `RESULTS.md`, with plots.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from benchmarks.rows import Program, Row
from benchmarks.side import Failed, Side

HERE = pathlib.Path(__file__).parent
GROUPS = ("steps", "graphs", "pointwise", "storage", "inference", "training", "sizes")
MODULES = {"jax.jit": "jax", "onnxruntime": "onnxruntime", "openvino": "openvino"}
ROW_SECONDS = 25.0  # after this many, a row takes no more turns
PACKAGES = ("torch", "numpy", "jax", "onnxruntime", "openvino")
UNITS = {"ms": (1e3, "ms"), "us": (1e6, "µs"), "value": (1e3, "ms"), "MB": (1.0, "MB")}


def is_installed(peer: str) -> bool:
    """Return whether a peer can be measured here."""
    module = MODULES.get(peer)
    return module is None or importlib.util.find_spec(module) is not None


def programs(row: Row, mxnet: str | None, compiles: bool) -> dict[str, tuple[str, Program]]:
    """Return python and program of each side."""
    results = {"MXNext": (sys.executable, row.ours)}
    results.update({f"MXNext {n}": (sys.executable, p) for n, p in row.variants.items()})
    for peer, program in row.peers.items():
        if peer == "mxnet" and mxnet:
            results["MXNet"] = (mxnet, program or row.ours)
        elif program is not None and is_installed(peer) and (compiles or peer != "torch.compile"):
            results[peer] = (sys.executable, program)
    return results


def measure(
    row: Row, sides: dict[str, tuple[str, Program]], rounds: int | None
) -> dict[str, float]:
    """Measure all sides in turns and return the best of each."""
    turns = min(row.rounds, rounds or row.rounds)
    return _measure_fresh(row, sides, turns) if row.fresh else _measure_kept(row, sides, turns)


def _home(name: str) -> pathlib.Path:
    return HERE if name == "MXNet" else HERE.parent


def _measure_fresh(row: Row, sides: dict[str, tuple[str, Program]], turns: int) -> dict[str, float]:
    """Measure each time in a new process."""
    best: dict[str, float] = {}
    start = time.monotonic()
    for turn in range(turns):
        for name, (python, program) in sides.items():
            side = Side(python, _home(name))
            try:
                value = side.measure(row.name, program, row.number, row.evaluates)
                best[name] = min(value, best.get(name, value))
            except Failed as error:
                print(f"  {name} failed: {error}", file=sys.stderr)
            finally:
                side.close()
        if turn > 0 and time.monotonic() - start > ROW_SECONDS:
            break
    return best


def _measure_kept(row: Row, sides: dict[str, tuple[str, Program]], turns: int) -> dict[str, float]:
    """Measure in processes that are set up once, all at the same time."""
    best: dict[str, float] = {}
    processes = {name: Side(python, _home(name)) for name, (python, _) in sides.items()}
    ready: dict[str, Side] = {}
    try:
        for name, side in processes.items():
            side.send(row.name, sides[name][1], 1)
        for name, side in processes.items():
            try:
                side.receive()
                ready[name] = side
            except Failed as error:
                print(f"  {name} failed: {error}", file=sys.stderr)
        start = time.monotonic()
        for turn in range(turns):
            for name, side in ready.items():
                value = side.measure(row.name, sides[name][1], row.number)
                best[name] = min(value, best.get(name, value))
            if turn > 0 and time.monotonic() - start > ROW_SECONDS:
                break
    finally:
        for side in processes.values():
            side.close()
    return best


def describe(row: Row, best: dict[str, float]) -> tuple[str, str, str, str, str]:
    """Return the cells of one line: ours, the best other, ratio, goal, all sides."""
    scale, unit = UNITS[row.unit]
    ours = min((v for n, v in best.items() if n.startswith("MXNext")), default=None)
    peers = {n: v for n, v in best.items() if not n.startswith("MXNext")}
    target = {"MXNet" if n == "mxnet" else n for n in row.against or peers}
    rivals = {n: v for n, v in peers.items() if n in target}
    name = min(rivals, key=lambda n: rivals[n]) if rivals else None
    ratio = f"{ours / rivals[name]:.2f}" if ours is not None and name else "–"
    everyone = ", ".join(f"{n} {v * scale:.4g}" for n, v in best.items())
    shown = "failed" if ours is None else f"{ours * scale:.4g} {unit}"
    other = f"{name} {rivals[name] * scale:.4g}" if name else "–"
    met = "" if ratio == "–" else (" ✓" if float(ratio) <= row.goal else "")
    return shown, other, ratio, f"≤ {row.goal}{met}", everyone


def heading(threads: int) -> str:
    """Return date, machine and versions."""
    described = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.split(":")[1].strip() for line in described if line.startswith("model name")}
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return (
        f"{datetime.date.today()}; {os.cpu_count()} cores of {', '.join(names) or 'a processor'}, "
        f"{threads} threads; Python {platform.python_version()}, {', '.join(versions)}."
    )


def main() -> None:
    """Parse the command line, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", default=GROUPS, help=", ".join(GROUPS))
    parser.add_argument("--mxnet", default=os.environ.get("MXNET_PYTHON"), help="MXNet's python")
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--rounds", type=int, help="at most so many turns of each side")
    parser.add_argument(
        "--minutes", type=float, default=11, help="then the rows that are left take one turn"
    )
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="count processor time of one thread, where other programs keep the machine busy",
    )
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md")
    options = parser.parse_args()
    if options.processor_time:
        os.environ.update(OMP_NUM_THREADS="1", BENCHMARK_CLOCK="processor")
        torch.set_num_threads(1)
    lines = [
        "# Results",
        "",
        "`python -m benchmarks.table --write` measures these rows; the best of interleaved rounds.",
        "A ratio compares MXNext's time or memory with the engine of the goal, named beside it.",
        "",
        heading(torch.get_num_threads()),
        "",
        "![Ratios of all rows](ratios.svg)",
        "",
        "![Cost against size](sizes.svg)",
        "",
    ]
    print(lines[5])
    measured: list[tuple[Row, dict[str, float]]] = []
    end = time.monotonic() + 60 * options.minutes
    for group in options.groups:
        lines += [f"## {group.capitalize()}", ""]
        lines += [
            "| work | MXNext | best other | ratio | goal | all |",
            "|---|---|---|---|---|---|",
        ]
        for row in importlib.import_module(f"benchmarks.rows.{group}").ROWS:
            if options.only not in row.name:
                continue
            start = time.monotonic()
            sides = programs(row, options.mxnet, not options.no_compile)
            rounds = options.rounds if time.monotonic() < end else 1
            best = measure(row, sides, rounds)
            measured.append((row, best))
            cells = describe(row, best)
            took = time.monotonic() - start
            print(
                f"{row.name:38} {cells[0]:>11}  {cells[1]:28} {cells[2]:>5} {cells[3]:8}  "
                f"({cells[4]}; {took:.0f} s)",
                flush=True,
            )
            lines.append(f"| {row.name} | {' | '.join(cells)} |")
            if options.write:
                (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n")
        lines.append("")
    if options.write:
        draw_ratios(measured, HERE / "ratios.svg")
        draw_sizes(measured, HERE / "sizes.svg")


if __name__ == "__main__":
    main()


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
    results = {"best other": ours / min(others.values())} if others else {}
    if "MXNet" in best:
        results["MXNet"] = ours / best["MXNet"]
    return results


def draw_ratios(measured: Measured, path: pathlib.Path) -> None:
    """Draw the ratios of all rows; left of the line MXNext is faster or smaller."""
    rows = [(row, _ratios(best)) for row, best in measured if not row.family]
    rows = [(row, result) for row, result in rows if result][::-1]
    if not rows:
        return
    plt = _pyplot()
    figure, axes = plt.subplots(figsize=(8, 0.28 * len(rows) + 1), layout="constrained")
    for name, color, offset in (("best other", "#1f77b4", 0.2), ("MXNet", "#7f7f7f", -0.2)):
        positions = [i + offset for i, (_, result) in enumerate(rows) if name in result]
        values = [result[name] for _, result in rows if name in result]
        axes.barh(positions, [v - 1 for v in values], 0.38, left=1, color=color, label=name)
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
    """Draw cost against size, a panel for each kind of work."""
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
