"""Count what a sum of gradients sends: ``python -m benchmarks.wire 2 3 4``.

Prints the bytes that a worker sends for each gradient, by setting, against float32.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

ELEMENTS, ROUNDS = 1_000_000, 5
SETTINGS = ("float32", "bf16", "2bit")
SPREADS = (0.1, 0.5, 2.0)  # of gradients, in thresholds: few, many, nearly all are sent


def count() -> None:
    """Push normal gradients as one worker; rank 0 prints what it sent."""
    import numpy as np

    import mxnet as mx

    sent: dict[tuple[str, float], float] = {}
    store: Any = mx.kvstore.create("dist_sync")
    random = np.random.RandomState(store.rank)
    for kind in SETTINGS:
        for spread in SPREADS if kind == "2bit" else SPREADS[:1]:
            store = mx.kvstore.create("dist_sync")
            if kind != "float32":
                store.set_gradient_compression({"type": kind})
            store.init("w", mx.nd.zeros(ELEMENTS))
            out = mx.nd.zeros(ELEMENTS)
            before = store.bytes_sent
            for _ in range(ROUNDS):
                grad = random.normal(scale=0.5 * spread, size=ELEMENTS)
                store.push("w", mx.nd.array(grad))
                store.pull("w", out=out)
            sent[kind, spread] = (store.bytes_sent - before) / ELEMENTS / ROUNDS
    if store.rank == 0:
        whole = sent["float32", SPREADS[0]]
        for (kind, spread), size in sent.items():
            name = f"{kind}, spread {spread} thresholds" if kind == "2bit" else kind
            print(
                f"{store.num_workers} workers, {name:30} {size:6.3f} bytes a gradient, "
                f"1/{whole / size:.1f} of float32"
            )


def main() -> None:
    """Run the count for each number of workers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("workers", nargs="*", type=int, default=[2, 3, 4])
    parser.add_argument("--as-worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_worker:
        count()
        return
    from mxnet.parallel.launch import main as launch

    for workers in options.workers:
        launch(["-n", str(workers), sys.executable, "-m", "benchmarks.wire", "--as-worker"])


if __name__ == "__main__":
    main()
