"""Record what the programs of `np_programs` give. Run inside an MXNet 1.9.1 environment:

python -m tests.golden.record.record_np_programs [program ...]
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import mxnet as mx
from tests.golden.record.np_programs import PROGRAMS

DATA = Path(__file__).resolve().parents[1] / "data" / "np_programs"


def main(chosen: list) -> None:
    """Write one file a program."""
    mx.npx.set_np()
    for name in chosen or PROGRAMS:
        program = importlib.import_module("tests.golden.record.np_programs." + name)
        history = program.train(mx)
        text = "[\n" + ",\n".join(json.dumps(step) for step in history) + "\n]\n"
        (DATA / (name + ".json")).write_text(text, encoding="utf-8")
        print(name, [step[:3] for step in history])


if __name__ == "__main__":
    main(sys.argv[1:])
