"""Record the learning rates of MXNet 1.9.1's schedulers. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_lr_schedulers.py
"""

from __future__ import annotations

import itertools
import json
import pathlib

import mxnet as mx

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
UPDATES = 200
WARMUPS = [
    {},
    {"warmup_steps": 20},
    {"warmup_steps": 35, "warmup_begin_lr": 0.05},
    {"warmup_steps": 30, "warmup_begin_lr": 0.02, "warmup_mode": "constant"},
]
SCHEDULES = {
    "FactorScheduler": [
        {"step": 1, "factor": 0.97},
        {"step": 30, "factor": 0.5, "base_lr": 0.4},
        {"step": 7, "factor": 0.6, "stop_factor_lr": 1e-3, "base_lr": 0.1},
        {"step": 50},
    ],
    "MultiFactorScheduler": [
        {"step": [10, 60, 61, 150], "factor": 0.1, "base_lr": 0.3},
        {"step": [1], "factor": 0.5},
    ],
    "PolyScheduler": [
        {"max_update": 150, "base_lr": 0.3},
        {"max_update": 90, "base_lr": 0.2, "pwr": 1, "final_lr": 0.01},
        {"max_update": 300, "pwr": 0.9},
    ],
    "CosineScheduler": [
        {"max_update": 150, "base_lr": 0.3},
        {"max_update": 90, "base_lr": 0.2, "final_lr": 0.01},
        {"max_update": 300},
    ],
}


def main():
    """Write [scheduler, arguments, rates at updates 0, 1, 2, ...]."""
    rows = []
    for name, settings in SCHEDULES.items():
        for setting, warmup in itertools.product(settings, WARMUPS):
            arguments = {**setting, **warmup}
            if warmup.get("warmup_begin_lr", 0) > setting.get("base_lr", 0.01):
                continue
            schedule = getattr(mx.lr_scheduler, name)(**arguments)
            rates = [schedule(n) for n in range(UPDATES)]
            rows.append([name, arguments, [float(f"{r:.12g}") for r in rates]])
    (DATA / "lr_schedulers.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    print(len(rows), "schedules")


if __name__ == "__main__":
    main()
