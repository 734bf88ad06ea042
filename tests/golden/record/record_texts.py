"""Record what the programs of `texts` print, log and warn of: run this file in MXNet 1.9.1."""

import json
import os
import pathlib
import sys
import tempfile

import numpy as np

import mxnet as mx

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
sys.path.insert(0, str(HERE))
from texts import PHRASES, PROGRAMS, run  # noqa: E402

os.chdir(tempfile.mkdtemp())
recorded = {}
for key, code in PROGRAMS.items():
    answer = run(mx, np, code)
    if answer["error"] is not None:
        kind, message = answer["error"]
        answer["error"] = [kind, [p for p in PHRASES if p in message]]
    recorded[key] = answer
(DATA / "texts.json").write_text(json.dumps(recorded, indent=0) + "\n")
print(len(recorded), "programs")
