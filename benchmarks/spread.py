"""How much the same work differs from process to process: ``python -m benchmarks.spread``.

Each process allocates its arrays at different addresses, and some addresses are slower than
others. Each process gives the median of its measurements; printed are the smallest, the middle one
and the largest of all processes, and the largest divided by the smallest.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys

from benchmarks.results import GROUPS, rows_of
from benchmarks.rows import Program, Row
from benchmarks.side import Side
from benchmarks.table import HERE, is_installed

MEASUREMENTS = 9  # of one process, after a first that warms it up


def process_median(row: Row, program: Program) -> float:
    """Return the median seconds of one new process."""
    side = Side(sys.executable, HERE.parent)
    try:
        side.measure(row.name, program, row.number)
        found = [side.measure(row.name, program, row.number) for _ in range(MEASUREMENTS)]
    finally:
        side.close()
    return statistics.median(found)


def sides_of(row: Row, peer: str) -> dict[str, Program]:
    """Return our program, and that of a peer if it has one and can run here."""
    other = row.peers.get(peer)
    return {"MXNext": row.ours, **({peer: other} if other and is_installed(peer) else {})}


def describe(name: str, side: str, medians: list[float]) -> str:
    """Return one line of the report.

    >>> describe("step", "MXNext", [2e-3, 1e-3, 3e-3])
    'step, MXNext: 3 processes, 1 / 2 / 3 ms, largest / smallest 3.00'
    """
    low, middle, high = min(medians), statistics.median(medians), max(medians)
    times = " / ".join(f"{seconds * 1e3:.4g}" for seconds in (low, middle, high))
    ratio = f"largest / smallest {high / low:.2f}"
    return f"{name}, {side}: {len(medians)} processes, {times} ms, {ratio}"


def main() -> None:
    """Measure the rows that a text names; end with an error where one spreads too far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="?", default="MLP step", help="rows whose name has this text")
    parser.add_argument("--processes", type=int, default=30)
    parser.add_argument("--peer", default="", help="also measure this peer, such as torch")
    parser.add_argument("--limit", type=float, default=1.2, help="of the ratio, for MXNext")
    parser.add_argument("--processor-time", action="store_true", help="of one thread")
    chosen = parser.parse_args()
    if chosen.processor_time:
        os.environ.update(BENCHMARK_CLOCK="processor", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")
    is_wide = False
    for row in (row for group in GROUPS for row in rows_of(group) if chosen.only in row.name):
        sides = sides_of(row, chosen.peer)
        medians: dict[str, list[float]] = {name: [] for name in sides}
        for _ in range(chosen.processes):
            for name, program in sides.items():
                medians[name].append(process_median(row, program))
        for name, values in medians.items():
            print(describe(row.name, name, values), flush=True)
        is_wide |= max(medians["MXNext"]) > chosen.limit * min(medians["MXNext"])
    sys.exit(int(is_wide))


if __name__ == "__main__":
    main()
