"""Record the answers to `sparse_modes` in an MXNet 1.9.1 environment.

python -m tests.golden.record.record_sparse_modes

Each case runs in a process of its own. Arrays are stored once and named by their numbers.
"""

from __future__ import annotations

import json
import pathlib

import mxnet as mx
from tests.golden.record.child import ask_in_child
from tests.golden.record.sparse_modes import MODES, answer, cases

PLACE = pathlib.Path(__file__).resolve().parents[1] / "data" / "sparse_modes.json"


def ask(case, modes):
    """Return the answers from a child process, fewer than asked if it died."""
    return ask_in_child(modes, lambda mode: answer(mx, mode, case), 30)


def answers_of(case):
    """Return the answers of all modes; "Crash" where MXNet ends the process."""
    found = []
    while len(found) < len(MODES):
        waiting = list(MODES)[len(found) :]
        new = ask(case, waiting)
        found += new if len(new) == len(waiting) else [*new, "Crash"]
    return dict(zip(MODES, found, strict=True))


def main():
    """Write one file."""
    numbers, stored = {}, {}

    def number(text):
        return numbers.setdefault(text, len(numbers))

    for key, case in cases().items():
        stored[key] = {
            mode: found if isinstance(found, str) else [[number(t) for t in part] for part in found]
            for mode, found in answers_of(case).items()
        }
    lines = [json.dumps(text) for text in numbers]
    rows = [
        f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}"
        for key, value in stored.items()
    ]
    PLACE.write_text(
        '{"arrays":[\n' + ",\n".join(lines) + '\n],"cases":{\n' + ",\n".join(rows) + "\n}}\n"
    )
    print(len(stored), "cases", len(numbers), "arrays")


if __name__ == "__main__":
    main()
