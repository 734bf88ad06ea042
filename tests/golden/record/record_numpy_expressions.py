"""Record the results of `numpy_expressions`. Run this file in an MXNet 1.9.1 environment."""

import json
import pathlib
import sys

import numpy as onp

import mxnet as mx
from mxnet import np, npx

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
sys.path.insert(0, str(HERE))
from describing import describe  # noqa: E402
from numpy_expressions import EXPRESSIONS, SETUP, WRITING  # noqa: E402


def answer(statement, expression):
    """Run the statement after the set-up and describe the expression's value, or the error."""
    space = {"mx": mx, "np": np, "npx": npx, "onp": onp}
    exec(SETUP, space)
    try:
        exec(statement, space)
        return describe(eval(expression, space))
    except Exception as error:
        return {"error": [c.__name__ for c in type(error).__mro__]}


npx.set_np()
recorded = {e: answer("", e) for e in EXPRESSIONS}
recorded.update({f"{s} => {e}": answer(s, e) for s, e in WRITING})
(DATA / "numpy_expressions.json").write_text(json.dumps(recorded, indent=0, sort_keys=True))
print(len(recorded), "answers")
