"""Record the results of `data_programs`. Run this file by its path inside MXNet 1.9.1.

``python tests/golden/record/record_data.py`` writes ``facts.json`` and ``transforms.npz`` into
``gluon_data``.
"""

from __future__ import annotations

import json
from pathlib import Path

import mxnet as mx  # isort: skip
import numpy as np
from data_programs import PROGRAMS, TRANSFORMS, answer, picture

DATA = Path(__file__).resolve().parents[1] / "data" / "gluon_data"


def main() -> None:
    """Write everything."""
    DATA.mkdir(exist_ok=True)
    facts = {name: answer(mx, name) for name in PROGRAMS}
    transforms = mx.gluon.data.vision.transforms
    facts["repr"] = {name: repr(make(transforms)) for name, make in TRANSFORMS.items()}
    text = json.dumps(facts, indent=1, sort_keys=True)
    (DATA / "facts.json").write_text(text + "\n", encoding="utf-8")
    kept = {}
    for dtype in ("uint8", "float32"):
        for name, make in TRANSFORMS.items():
            kept[f"{name}/{dtype}"] = make(transforms)(picture(mx, dtype)).asnumpy()
    np.savez_compressed(DATA / "transforms.npz", **kept)


if __name__ == "__main__":
    main()
