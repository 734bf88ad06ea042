"""Saving and loading 500 MB of arrays: `.params` files beside torch's own files."""

from __future__ import annotations

import pathlib
import statistics
import tempfile
import time
from collections.abc import Callable

import torch

from mxnet.formats import params_file

ARRAYS = {f"layer{i}_weight": torch.ones(1250, 1000) for i in range(100)}
MEGABYTES = sum(a.nbytes for a in ARRAYS.values()) / 1e6
ROUNDS = 5


def rate(action: Callable[[], object]) -> float:
    """Return MB/s, the median of a few rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return MEGABYTES / statistics.median(times)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ours, other = pathlib.Path(folder) / "ours.params", pathlib.Path(folder) / "other.pt"
        for name, action in (
            ("params save", lambda: params_file.write(ours, ARRAYS)),
            ("params load", lambda: params_file.read(ours)),
            ("torch save", lambda: torch.save(ARRAYS, other)),
            ("torch load", lambda: torch.load(other)),
        ):
            print(f"{name:12} {rate(action):6.0f} MB/s")


if __name__ == "__main__":
    main()
