"""Record what the programs of `tests.behavior.combinations` return. Run in MXNet 1.9.1:

python -m tests.golden.record.record_combinations [program ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.behavior.combinations import plain, programs

MARK = "result: "
RESULTS = Path(__file__).resolve().parents[1] / "data" / "combinations.json"


def run(name: str) -> str:
    """Return a program's result as JSON, or its error."""
    try:
        return json.dumps(plain(programs()[name]()))
    except Exception as error:
        return json.dumps({"failed": f"{type(error).__name__}: {error}"[:300]})


def main(chosen: list[str]) -> None:
    """Write one line for each program; each runs in a process of its own."""
    results = json.loads(RESULTS.read_text()) if chosen else {}
    for name in chosen or programs():
        command = [sys.executable, "-m", "tests.golden.record.record_combinations", "--one", name]
        child = subprocess.run(command, capture_output=True, text=True, timeout=120)
        answers = [line for line in child.stdout.splitlines() if line.startswith(MARK)]
        results[name] = json.loads(answers[-1][len(MARK) :]) if answers else {"failed": "no answer"}
        if "failed" in str(results[name])[:12]:
            print(name, results[name])
    lines = [f"{json.dumps(name)}: {json.dumps(result)}" for name, result in results.items()]
    RESULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print("\n" + MARK + run(sys.argv[2]))
    else:
        main(sys.argv[1:])
