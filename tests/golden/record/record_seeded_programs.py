"""Record what MXNet 1.9.1 gives in the programs of ``seeded_programs.py``.

Run it with MXNet's own Python, from the root of the repository.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
sys.path[:] = [str(HERE)] + [p for p in sys.path if p and Path(p) != HERE.parents[2]]

import seeded_programs  # noqa: E402

import mxnet as mx  # noqa: E402

answers = {}
for name in seeded_programs.PROGRAMS:
    rows = seeded_programs.run(mx, name)
    answers[name] = [[float("%.6g" % x) for x in row] for row in rows]
text = json.dumps(answers, indent=0, separators=(",", ":"))
(DATA / "seeded_programs.json").write_text(text + "\n", encoding="utf-8")
