"""Record the classes of errors of `operator_mistakes` in an MXNet 1.9.1 environment.

python -m tests.golden.record_operator_mistakes

Each operator runs in a process of its own. "ok" is no error, "Crash" the end of the process.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal

import mxnet as mx
from tests.golden.operator_mistakes import error_of, mistakes, modes_of

PLACE = pathlib.Path(__file__).with_name("operator_mistakes.json")


def ask(questions):
    """Return the answers from a child process, fewer than asked if it died."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        signal.alarm(60)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as pipe:
            for mode, mistake in questions:
                error = error_of(mx, mode, mistake)
                print("ok" if error is None else type(error).__name__, file=pipe, flush=True)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as stream:
        answers = [line.strip() for line in stream if line.endswith("\n")]
    os.waitpid(child, 0)
    return answers


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
