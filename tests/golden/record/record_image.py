"""Record MXNet 1.9.1's image functions and augmenters. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_image.py

Draws are scripted: each takes the next of a list of fractions, so that the same script gives the
same image in another program whatever its random numbers are.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import random

import numpy as np

import mxnet as mx

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"
place = importlib.util.spec_from_file_location("cases", HERE / "image_cases.py")
cases = importlib.util.module_from_spec(place)
place.loader.exec_module(cases)


class Script:
    """Takes the place of the random functions that MXNet calls."""

    def __init__(self):
        self.fractions, self.at = [0.5], 0

    def start(self, fractions):
        self.fractions, self.at = fractions, 0

    def take(self):
        self.at += 1
        return self.fractions[(self.at - 1) % len(self.fractions)]

    def several(self, size):
        return np.array([self.take() for _ in range(int(np.prod(size)))]).reshape(size)

    def install(self):
        random.random = self.take
        random.uniform = lambda a, b: a + (b - a) * self.take()
        random.randint = lambda a, b: a + int(self.take() * (b - a + 1))
        random.shuffle = lambda x: x.reverse()
        np.random.uniform = lambda a, b, size=None: (
            a + (b - a) * (self.take() if size is None else self.several(size))
        )
        np.random.normal = lambda mean, deviation, size: (
            mean + deviation * (2 * self.several(size) - 1)
        )


def main():
    script = Script()
    script.install()
    arrays, facts = {}, {}
    for name, fractions, call in cases.calls(mx):
        script.start(fractions)
        result = call()
        parts = result if isinstance(result, tuple) else (result,)
        facts[name] = []
        for number, part in enumerate(parts):
            if isinstance(part, mx.nd.NDArray | np.ndarray):
                part = part.asnumpy() if isinstance(part, mx.nd.NDArray) else part
                arrays[f"{name}|{number}"] = part
                facts[name].append(None)
            else:
                facts[name].append(part)
    np.savez_compressed(DATA / "image.results.npz", **arrays)
    (DATA / "image.results.json").write_text(json.dumps(facts))
    print(len(facts), "calls")


if __name__ == "__main__":
    main()
