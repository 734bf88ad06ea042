"""Memory use is stable when training on data with changing shapes."""

from __future__ import annotations

import gc
import random

from benchmarks import endurance
from mxnet._process import memory


def live_bytes():
    gc.collect()
    return sum(memory._live_storages()["cpu"].values())


def test_memory_is_stable_when_training_on_changing_shapes():
    steps = [endurance.convolutional(), endurance.recurrent(), endurance.bucketed()]
    draw = random.Random(0)
    for number in range(60):
        steps[number % 3](draw)
    before = live_bytes()
    seen = []
    for number in range(60):
        steps[number % 3](draw)
        if number % 20 == 19:
            seen.append(live_bytes())
    assert max(seen) < 1.05 * before + 200_000
