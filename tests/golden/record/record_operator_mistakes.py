"""Record the classes of errors of `operator_mistakes` in an MXNet 1.9.1 environment.

python -m tests.golden.record.record_operator_mistakes

Each operator runs in a process of its own. "ok" is no error, "Crash" the end of the process.
"""

from __future__ import annotations

import json
import pathlib

import mxnet as mx
from tests.golden.record.child import ask_in_child
from tests.golden.record.operator_mistakes import error_of, mistakes, modes_of

PLACE = pathlib.Path(__file__).resolve().parents[1] / "data" / "operator_mistakes.json"


def name_of_error(question):
    """Return the class of the error that a mistake raises, or "ok"."""
    mode, mistake = question
    error = error_of(mx, mode, mistake)
    return "ok" if error is None else type(error).__name__


def ask(questions):
    """Return the answers from a child process, fewer than asked if it died."""
    return ask_in_child(questions, name_of_error, 60)


def answers_of(by_name):
    """Return {what is wrong: classes of all modes}."""
    questions = [(mode, m) for m in by_name.values() for mode in modes_of(m)]
    found = []
    while len(found) < len(questions):
        new = ask(questions[len(found) :])
        found += new if len(found) + len(new) == len(questions) else [*new, "Crash"]
    answers = {}
    for (_, mistake), answer in zip(questions, found, strict=True):
        answers.setdefault(mistake.what, []).append(answer)
    # one class where all modes agree
    return {k: v[0] if len(set(v)) == 1 else v for k, v in answers.items()}


def main():
    """Write one file."""
    every = mistakes()
    stored = {op: answers_of(by_name) for op, by_name in every.items()}
    lines = (json.dumps(op) + ":" + json.dumps(stored[op], separators=(",", ":")) for op in stored)
    PLACE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(len(stored), "operators", sum(map(len, stored.values())), "mistakes")


if __name__ == "__main__":
    main()
