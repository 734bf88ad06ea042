"""Record what MXNet 1.9.1 gives in the programs of ``tests/state/programs.py``.

Run it with MXNet's own Python, from the root of the repository. Programs that MXNet refuses, or
that grow without bounds, are left out.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

os.environ["MXNET_ENGINE_TYPE"] = "NaiveEngine"
os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"  # its copies of weights go stale
HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "data"
ROOT = HERE.parents[2]
sys.path[:] = [str(ROOT / "tests" / "state")] + [
    p for p in sys.path if p and Path(p) not in (HERE, ROOT)
]

import numpy as np  # noqa: E402
import programs  # noqa: E402

import mxnet as mx  # noqa: E402

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 300
TARGET = Path(sys.argv[2]) if len(sys.argv) > 2 else DATA / "state_programs.npz"


def record():
    """Write the numbers of all programs in one row, and where those of each array are."""
    index, rows, seed = {}, [], 0
    while len(index) < COUNT:
        seed += 1
        statements = programs.make_program(seed)
        try:
            found = programs.run_program(mx, statements)
        except Exception as error:
            print(seed, type(error).__name__, str(error).strip().splitlines()[-1][:150])
            continue
        if not all(np.isfinite(v).all() and np.abs(v).max() < 1e4 for v in found.values()):
            print(seed, "grows without bounds")
            continue
        assert all(v.dtype == np.float32 for v in found.values())
        shapes = {name: v.shape for name, v in found.items()}
        index[seed] = {"program": programs.checksum(statements), "shapes": shapes}
        rows += [v.reshape(-1) for v in found.values()]
    text = np.frombuffer(json.dumps(index).encode(), np.uint8)
    np.savez_compressed(str(TARGET), index=text, numbers=np.concatenate(rows))
    print(COUNT, "programs of", seed)


record()
