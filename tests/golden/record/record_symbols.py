"""Record what real MXNet makes of `symbol_programs`. Run this file by its path inside MXNet 1.9.1:

``python tests/golden/record/record_symbols.py [program ...]`` writes ``symbols/<program>.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mxnet as mx  # isort: skip
from symbol_programs import PROGRAMS, answer

DATA = Path(__file__).resolve().parents[1] / "data" / "symbols"


def main(names: list[str]) -> None:
    """Write the answers of real MXNet."""
    DATA.mkdir(exist_ok=True)
    for name in names or PROGRAMS:
        text = json.dumps(answer(mx, name), indent=1, sort_keys=True)
        (DATA / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
