"""Training steps of ResNet-18 by two processes; see `distributed`."""

from __future__ import annotations

from benchmarks.cases.distributed import two_workers

CASES = [
    two_workers(
        "ResNet-18 112, 2 workers, batch 8",
        "gluon.model_zoo.vision.resnet18_v1()",
        "resnet18()",
        "(8, 3, 112, 112)",
        1,
    ),
]
