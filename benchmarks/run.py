"""Run the cases and print a table: ``python -m benchmarks.run [options] [group ...]``.

``--mxnet PYTHON`` compares with MXNet 1.9.1, ``--base FOLDER`` with another checkout of MXNext.
All sides take turns within one run.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import pkgutil
import subprocess
import sys

from benchmarks import cases as groups
from benchmarks.case import Case

HERE = pathlib.Path(__file__).parent
ROUNDS = 7


def _environment(home: pathlib.Path) -> dict[str, str]:
    """Return ours, with compiled modules kept as an installed package has them."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(home)}


class Side:
    """A process that measures for one of the sides."""

    def __init__(self, python: str, home: pathlib.Path) -> None:
        self._process = subprocess.Popen(
            [python, str(HERE / "measure.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=home,
            env=_environment(home),
        )

    def measure(self, case: Case, program: tuple[str, str], last: bool) -> float | None:
        """Return the seconds of one run, or None when it failed."""
        request = {
            "name": case.name,
            "setup": program[0],
            "statement": program[1],
            "number": case.number,
            "last": last,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the process ended"}')
        if "error" in answer:
            print(f"{case.name}: {answer['error']}", file=sys.stderr)
        return answer.get("seconds")


def measure(case: Case, sides: dict[str, Side], rounds: int) -> dict[str, float | None]:
    """Let the sides take turns; return the best of each."""
    best: dict[str, float | None] = {}
    for turn in range(rounds):
        for name, side in sides.items():
            program = case.torch if name == "torch" else case.mx
            if program is None:
                continue
            seconds = side.measure(case, program, turn == rounds - 1)
            if seconds is not None:
                best[name] = min(seconds, best.get(name) or seconds)
    return best


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
    options = parser.parse_args()
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


if __name__ == "__main__":
    main()
