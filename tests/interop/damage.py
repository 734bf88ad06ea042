"""Damage to files: changed bytes, holes, repetitions, truncation."""

from __future__ import annotations

import random


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with a few changes: other values, holes, repetitions, truncation."""
    changed = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5])):
        at = rng.randrange(max(len(changed), 1))
        kind = rng.randrange(5)
        if kind == 0:
            changed[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            changed[at : at + 8] = b"\xff" * rng.randrange(1, 9)
        elif kind == 2:
            del changed[at : at + rng.randrange(1, 40)]
        elif kind == 3:
            changed[at:at] = changed[at // 2 :][: rng.randrange(1, 60)]
        else:
            changed = changed[: max(at, 1)]
    return bytes(changed)
