"""Record what MXNet 1.9.1 makes of `layer_cases`. Run this file by its path inside MXNet 1.9.1:

``python tests/golden/record/record_layers.py [family ...]`` writes ``layers_<family>.npz`` and
``layers_<family>.json``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import mxnet as mx  # isort: skip
import numpy as np
from layer_cases import FAMILIES, answer, description

DATA = Path(__file__).resolve().parents[1] / "data"


def main(families: list[str]) -> None:
    """Write the answers of real MXNet."""
    for family in families or FAMILIES:
        arrays, descriptions = {}, {}
        for case in FAMILIES[family]:
            try:
                descriptions[case.key] = description(mx, case)
                arrays.update({f"{case.key}:{k}": v for k, v in answer(mx, case).items()})
            except Exception as error:
                print(case.key, type(error).__name__, str(error).strip()[-400:])
                descriptions.pop(case.key, None)
        np.savez_compressed(DATA / f"layers_{family}.npz", **arrays)
        text = json.dumps(descriptions, indent=0, sort_keys=True)
        (DATA / f"layers_{family}.json").write_text(text + "\n", encoding="utf-8")
        print(family, len(descriptions), "of", len(FAMILIES[family]))


if __name__ == "__main__":
    main(sys.argv[1:])
