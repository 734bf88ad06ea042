"""Compare with all peers: ``python -m benchmarks.table --mxnet PYTHON --write``.

Each row is the same work for MXNext, torch, jax, ONNX Runtime, OpenVINO and MXNet 1.9.1, as far
as they are installed. Several processes of each side run alternately; each reports its fastest
round, and a cell shows their median and range. ``--write`` puts the rows into `results.json`, where
rows that were not measured and those of other machines keep their figures, and writes `RESULTS.md`
and plots.
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

import torch

from benchmarks.plots import draw_ratios, draw_sizes
from benchmarks.results import GROUPS, Result, describe, find_stalls, load, render, rows_of, store
from benchmarks.rows import Program, Row
from benchmarks.side import Failed, Side

HERE = pathlib.Path(__file__).parent
MODULES = {"jax.jit": "jax", "onnxruntime": "onnxruntime", "openvino": "openvino"}
PROCESSES = 5
ROW_SECONDS = 120.0  # after this many, a row takes no more processes
PACKAGES = ("torch", "numpy", "jax", "onnxruntime", "openvino")


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
    row: Row, sides: dict[str, tuple[str, Program]], processes: int, rounds: int | None = None
) -> dict[str, list[float]]:
    """Return the best of each process for every side; sides run alternately."""
    cells: dict[str, list[float]] = {}
    rounds = min(row.rounds, rounds or row.rounds)
    end = time.monotonic() + ROW_SECONDS
    for _ in range(processes):
        best = _measure_fresh(row, sides) if row.fresh else _measure_rounds(row, sides, rounds)
        for name, value in best.items():
            cells.setdefault(name, []).append(value)
        sides = {name: sides[name] for name in sides if name in best}
        if time.monotonic() > end:
            break
    return cells


def _home(name: str) -> pathlib.Path:
    return HERE if name == "MXNet" else HERE.parent


def _measure_fresh(row: Row, sides: dict[str, tuple[str, Program]]) -> dict[str, float]:
    """Measure each side once, alone in a new process."""
    values: dict[str, float] = {}
    for name, (python, program) in sides.items():
        side = Side(python, _home(name))
        try:
            values[name] = side.measure(row.name, program, row.number, row.evaluates)
        except Failed as error:
            print(f"  {name} failed: {error}", file=sys.stderr)
        finally:
            side.close()
    return values


def _measure_rounds(
    row: Row, sides: dict[str, tuple[str, Program]], rounds: int
) -> dict[str, float]:
    """Set up a process for each side, measure them alternately, and return the best of each."""
    values: dict[str, float] = {}
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
        for _ in range(rounds):
            for name, side in ready.items():
                value = side.measure(row.name, sides[name][1], row.number)
                values[name] = min(value, values.get(name, value))
    finally:
        for side in processes.values():
            side.close()
    return values


def describe_machine(threads: int, is_processor_time: bool = False) -> str:
    """Return cores, instructions, threads and clock: what makes figures comparable."""
    described = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    names = {line.split(":")[1].strip() for line in described if line.startswith("model name")}
    cores = f"{os.cpu_count()} cores of {', '.join(names) or 'a processor'}"
    instructions = torch.backends.cpu.get_cpu_capability()
    clock = ", processor time" if is_processor_time else ""
    return f"{cores}, {instructions}, {threads} thread{'s' * (threads > 1)}{clock}"


def heading(machine: str) -> str:
    """Return date, machine and versions."""
    versions = []
    for package in PACKAGES:
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    python = f"Python {platform.python_version()}"
    return f"{datetime.date.today()}; {machine}; {python}, {', '.join(versions)}."


def main() -> None:
    """Parse the command line, measure and print."""
    options = _parse()
    if options.processor_time:
        os.environ.update(OMP_NUM_THREADS="1", BENCHMARK_CLOCK="processor")
        torch.set_num_threads(1)
    machine = describe_machine(torch.get_num_threads(), options.processor_time)
    run = heading(machine)
    print(run)
    everywhere = load() if options.write else {}
    results = everywhere.setdefault(machine, {}) if options.processes else {}
    end = time.monotonic() + 60 * options.minutes
    for group in options.groups if options.processes else ():
        rows = [row for row in rows_of(group) if options.only in row.name]
        for row in rows:
            processes = options.processes if time.monotonic() < end else 1
            results[row.name] = _measure_and_print(row, run, processes, options)
        cells = {row.name: results[row.name].cells for row in rows}
        for row in rows:  # a machine that stood still for a moment
            if row.name in find_stalls(rows, cells):
                print(f"{row.name} took longer than ten times as much work: measured again")
                results[row.name] = _measure_and_print(row, run, options.processes, options)
        if options.write:
            store(everywhere)
    if options.write:
        (HERE / "RESULTS.md").write_text(render(everywhere))
        draw_ratios(everywhere, HERE / "ratios.svg")
        draw_sizes(everywhere, HERE / "sizes.svg")


def _measure_and_print(row: Row, run: str, processes: int, options: argparse.Namespace) -> Result:
    sides = programs(row, options.mxnet, not options.no_compile)
    start = time.monotonic()
    cells = measure(row, sides, processes, options.rounds)
    own, other, ratio, goal, *_, notes, everyone = describe(row, cells)
    took = time.monotonic() - start
    print(
        f"{row.name:38} {own:>11}  {other:28} {ratio:>5} {goal:8}  {notes} "
        f"({everyone}; {took:.0f} s)",
        flush=True,
    )
    return Result(run, cells)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", default=GROUPS, help=", ".join(GROUPS))
    parser.add_argument("--mxnet", default=os.environ.get("MXNET_PYTHON"), help="MXNet's python")
    parser.add_argument("--only", default="", help="rows whose name holds this text")
    parser.add_argument("--rounds", type=int, help="maximum number of rounds in each process")
    parser.add_argument(
        "--processes",
        type=int,
        default=PROCESSES,
        help=f"processes of each side ({PROCESSES}); 0 measures nothing and writes the page again",
    )
    parser.add_argument(
        "--minutes", type=float, default=60, help="then the rows that are left take one process"
    )
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="count processor time of one thread, where other programs keep the machine busy",
    )
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument(
        "--write", action="store_true", help="put the rows into results.json and RESULTS.md"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
