"""Record the classes of exceptions of `misuses` in an MXNet 1.9.1 environment: run this file."""

import json
import logging
import os
import pathlib
import sys
import tempfile
import warnings

import numpy as np

import mxnet as mx

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
sys.path.insert(0, str(HERE))
from misuses import EXPRESSIONS, SETUP  # noqa: E402


def answer(expression):
    """Return the name of the class that evaluating the expression raises."""
    space = {"mx": mx, "np": np}
    exec(SETUP, space)
    try:
        repr(eval(expression, space))  # MXNet computes only now
    except (Exception, StopIteration) as error:
        return type(error).__name__
    raise AssertionError(f"no error: {expression}")


warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
os.chdir(tempfile.mkdtemp())
recorded = {expression: answer(expression) for expression in EXPRESSIONS}
(DATA / "misuses.json").write_text(json.dumps(recorded, indent=0, sort_keys=True) + "\n")
print(len(recorded), "answers")
