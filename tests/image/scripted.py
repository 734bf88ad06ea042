"""A random generator whose draws follow a list of fractions, as in the recording of MXNet."""

from __future__ import annotations

import numpy as np


class ScriptedGenerator:
    def __init__(self, fractions):
        self.fractions, self.at = fractions, 0

    def random(self):
        self.at += 1
        return self.fractions[(self.at - 1) % len(self.fractions)]

    def several(self, count):
        return np.array([self.random() for _ in range(count)])

    def uniform(self, low, high, count=None):
        return low + (high - low) * (self.random() if count is None else self.several(count))

    def integers(self, low, high, endpoint):
        assert endpoint
        return low + int(self.random() * (high - low + 1))

    def normal(self, mean, deviation, count):
        return mean + deviation * (2 * self.several(count) - 1)

    def permutation(self, count):
        return np.arange(count)[::-1]
