"""Record the answers to `sweeps` in an MXNet 1.9.1 environment.

python -m tests.golden.record.record_sweeps [name ...]

Expressions run in groups, each in a process of its own. Expressions that raise or crash in MXNet
are omitted: MXNext may give a better answer there.
"""

from __future__ import annotations

import importlib
import json
import pathlib
import sys

import mxnet as mx
from mxnet import np, npx
from tests.golden.record.child import ask_in_child
from tests.golden.record.describing import describe

SWEEPS = pathlib.Path(__file__).resolve().parent / "sweeps"
DATA = SWEEPS.parents[1] / "data" / "sweeps"


def answer(setup, expression):
    """Return a description of the expression's value, or of the error."""
    space = {"mx": mx, "np": np, "npx": npx}
    exec(setup, space)
    try:
        value = describe(eval(expression, space))
        mx.nd.waitall()
        return value
    except Exception:
        return None


def ask(sweep, expressions):
    """Return the answers from a child process, fewer than asked if it died."""

    def answer_in_mode(expression):
        npx.set_np(shape=sweep.NUMPY, array=sweep.NUMPY)
        return answer(sweep.SETUP, expression)

    return ask_in_child(expressions, answer_in_mode, 120, is_quiet=False)


def record(name):
    """Write one file."""
    sweep = importlib.import_module("tests.golden.record.sweeps." + name)
    waiting, answers = list(dict.fromkeys(sweep.EXPRESSIONS)), {}
    while waiting:
        found = ask(sweep, waiting[:100])
        answers.update(zip(waiting[: len(found)], found, strict=True))
        if len(found) < len(waiting[:100]):
            print("MXNet ends the process at", waiting[len(found)])
            found.append(None)
        waiting = waiting[len(found) :]
    answers = {key: value for key, value in answers.items() if value is not None}
    lines = (json.dumps(key) + ": " + json.dumps(answers[key]) for key in sorted(answers))
    (DATA / (name + ".json")).write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(name, len(answers), "answers")


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(p.stem for p in SWEEPS.glob("[a-z]*.py")):
        record(name)
