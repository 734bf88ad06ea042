"""Record what MXNet 1.9.1 answers to `package_programs`. Run this file by its path inside it.

``python tests/golden/record/record_packages.py FOLDER...`` writes ``packages.json``; packages are
looked for in the folders too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mxnet as mx  # isort: skip
from describing import describe
from package_programs import PACKAGES, SEAMS

if __name__ == "__main__":
    sys.path[:0] = sys.argv[1:]
    answers = {n: [describe(a) for a in f(mx)] for n, f in {**SEAMS, **PACKAGES}.items()}
    path = Path(__file__).resolve().parents[1] / "data" / "packages.json"
    path.write_text(json.dumps(answers) + "\n", encoding="utf-8")
