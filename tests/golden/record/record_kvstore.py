"""Record what MXNet 1.9.1's stores hold after pushes: sums, optimizers, 2-bit compression.

Run inside an MXNet 1.9.1 environment: python tests/golden/record/record_kvstore.py
"""

from __future__ import annotations

import json
import pathlib

import numpy as np

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
ROUNDS = 8


def gradients(devices):
    """Return the gradients of each round and device."""
    random = np.random.RandomState(7)
    return np.round(random.normal(scale=0.6, size=(ROUNDS, devices, 6)) * 8) / 8


def stories(mx):
    """Yield (name, what the store holds after each round)."""
    settings = [("local", None, None), ("device", None, None)]
    settings += [("device", None, 0.5), ("device", None, 0.25), ("local", "sgd", None)]
    settings += [("device", "adam", None), ("device", "sgd", 0.5)]
    for kind, optimizer, threshold in settings:
        for devices in (1, 2, 3):
            store = mx.kvstore.create(kind)
            if threshold:
                store.set_gradient_compression({"type": "2bit", "threshold": threshold})
            store.init("w", mx.nd.ones(6))
            if optimizer:
                store.set_optimizer(mx.optimizer.create(optimizer, learning_rate=0.1))
            out, held = mx.nd.zeros(6), []
            for values in gradients(devices):
                store.push("w", [mx.nd.array(v, ctx=mx.cpu(i)) for i, v in enumerate(values)])
                store.pull("w", out=out)
                held.append([round(float(x), 6) for x in out.asnumpy()])
            yield f"{kind}-{optimizer}-{threshold}-{devices}", held


def main():
    """Write kvstore.json."""
    import mxnet as mx

    rows = dict(stories(mx))
    text = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items())
    (DATA / "kvstore.json").write_text("{\n" + text + "\n}\n")
    print(len(rows), "stories")


if __name__ == "__main__":
    main()
