"""Run the cases and print a table: ``python -m benchmarks.run [options] [group ...]``.

``--mxnet PYTHON`` compares with MXNet 1.9.1, ``--base FOLDER`` with another checkout of MXNext,
``--device gpu`` measures on the first GPU what does not name a device itself.
All sides are measured alternately within one run.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import pkgutil
import sys

from benchmarks import cases as groups
from benchmarks.cases import Case
from benchmarks.side import Ended, Failed, Side

HERE = pathlib.Path(__file__).parent
ROUNDS = 7
ATTEMPTS = 3  # to start a program: MXNet's servers may end at the start of a job


def measure(case: Case, sides: dict[str, Side], rounds: int) -> dict[str, float | None]:
    """Measure all sides alternately and return the best of each."""
    best: dict[str, float | None] = {}
    failed: set[str] = set()
    for index in range(rounds):
        for name in sides:
            program = case.torch if name == "torch" else case.mx
            if program is None or name in failed:
                continue
            try:
                seconds = _measure_once(case, sides, name, program, index, rounds)
                best[name] = min(seconds, best.get(name) or seconds)
            except Failed as error:
                failed.add(name)
                print(f"{case.name}, {name}: {error}", file=sys.stderr)
    return best


def _measure_once(
    case: Case,
    sides: dict[str, Side],
    name: str,
    program: tuple[str, str],
    index: int,
    rounds: int,
) -> float:
    """Return the time of one round; a program that does not start is started again."""
    attempts = ATTEMPTS if index == 0 else 1
    while True:
        side, attempts = sides[name], attempts - 1
        side.limit = case.limit
        try:
            return side.measure(case.name, program, case.number, last=index == rounds - 1)
        except Ended as error:
            side.close()
            sides[name] = Side(side.python, side.home)
            if not attempts:
                raise
            print(f"{case.name}, {name}: {error}; starting again", file=sys.stderr)


def ratio(first: float | None, second: float | None) -> str:
    """Return a ratio as text."""
    return f"{first / second:6.2f}" if first and second else "     -"


def main() -> None:
    """Parse the command line and print the table."""
    known = sorted(m.name for m in pkgutil.iter_modules(groups.__path__))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", default=known, help=", ".join(known))
    parser.add_argument(
        "--mxnet", default=os.environ.get("MXNET_PYTHON"), help="MXNet 1.9.1's python"
    )
    parser.add_argument("--base", type=pathlib.Path, help="another checkout of MXNext")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu", help="default device")
    options = parser.parse_args()
    os.environ["BENCHMARK_DEVICE"] = options.device  # of the processes that measure
    home = HERE.parent
    print(
        f"{'case':32} {'MXNext µs':>12} {'/torch':>6} {'/MXNet':>6} {'/base':>6}   goals (ratios)"
    )
    for group in options.groups:
        sides = {"ours": Side(sys.executable, home), "torch": Side(sys.executable, home)}
        if options.mxnet:
            sides["mxnet"] = Side(options.mxnet, HERE)
        if options.base:
            sides["base"] = Side(sys.executable, options.base)
        cases = importlib.import_module(f"benchmarks.cases.{group}").CASES
        for case in (c for c in cases if options.only in c.name):
            best = measure(case, sides, options.rounds)
            ours = best.get("ours")
            shown = f"{ours * 1e6:12.1f}" if ours else f"{'failed':>12}"
            print(
                f"{case.name:32} {shown} {ratio(ours, best.get('torch'))} "
                f"{ratio(ours, best.get('mxnet'))} {ratio(ours, best.get('base'))}   {case.goals}",
                flush=True,
            )
        for side in sides.values():
            side.close()


if __name__ == "__main__":
    main()
