"""Record what real MXNet prints for `summary_programs`. Run this file by its path inside it:

``python tests/golden/record/record_summaries.py`` writes ``summaries.json``.
"""

from __future__ import annotations

import json
from pathlib import Path

import mxnet as mx  # isort: skip
from summary_programs import PROGRAMS, answer

if __name__ == "__main__":
    answers = {name: answer(mx, name) for name in PROGRAMS}
    path = Path(__file__).resolve().parents[1] / "data" / "summaries.json"
    path.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
