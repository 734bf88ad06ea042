"""Random programs for the pickle machine, offered as optimizer states."""

from __future__ import annotations

import json
import random
import resource
import struct
import sys
import time
from collections import Counter

import mxnet as mx
from mxnet.optimizer.states_file import read_states

NAMES = [
    *("builtins bytes", "builtins bytearray", "builtins set", "builtins eval", "builtins getattr"),
    *("numpy ndarray", "numpy dtype", "numpy._core.multiarray _reconstruct", "numpy float32"),
    *("numpy._core.multiarray scalar", "numpy._core.numeric _frombuffer", "_codecs encode"),
    *("mxnet.ndarray.ndarray NDArray", "mxnet.optimizer.optimizer SGD", "os system"),
    *("mxnet.lr_scheduler FactorScheduler", "collections OrderedDict", "copyreg _reconstructor"),
]
ACTIONS = (b"\x85", b"\x86", b"\x87", b"t", b"R", b"\x81", b"b", b"a")
ENDINGS = (b".", b"s.", b"u.", b"bs.", b"R.", b"")


def operand(chance: random.Random) -> bytes:
    size = chance.choice((0, 1, 3, 300, 2**31 - 1, 2**32 - 1))
    words = ("handle", "lr", "__class__", "update", "x")
    return chance.choice(
        (
            lambda: b"K" + bytes([chance.randrange(256)]),
            lambda: b"J" + struct.pack("<i", chance.randrange(-(2**31), 2**31)),
            lambda: b"\x8a" + bytes([chance.choice((0, 1, 8, 255))]) + chance.randbytes(8),
            lambda: b"G" + chance.randbytes(8),
            lambda: b"X" + struct.pack("<I", len(w := chance.choice(words))) + w.encode(),
            lambda: b"C" + bytes([4]) + chance.randbytes(4),
            lambda: b"B" + struct.pack("<I", size) + chance.randbytes(min(size, 300)),
            lambda: b"\x8e" + struct.pack("<Q", size) + chance.randbytes(min(size, 300)),
            lambda: b"c" + chance.choice(NAMES).replace(" ", "\n").encode() + b"\n",
            lambda: b"N",
            lambda: b"]",
            lambda: b"}",
            lambda: b")",
            lambda: b"(",
            lambda: b"\x8f",
        )
    )()


def program(chance: random.Random) -> bytes:
    """Return opcodes in an order that often makes sense."""
    parts = [b"\x80\x04"]
    if chance.random() < 0.7:
        parts.append(b"}K\x00")
    for _ in range(chance.randrange(1, 30)):
        parts.append(operand(chance))
        if chance.random() < 0.6:
            parts.append(
                chance.choice((b"\x85", b"\x86", b"\x87", b"t", b"R", b"\x81", b"b", b"a"))
            )
        if chance.random() < 0.3:
            memo = bytes([chance.randrange(4)])
            far = struct.pack("<I", chance.randrange(2**32))
            parts.append(chance.choice((b"\x94", b"q" + memo, b"h" + memo, b"r" + far, b"s", b"u")))
    return b"".join(parts) + chance.choice(ENDINGS)


def main(seed: int, count: int) -> dict:
    """Run `count` programs; return how they ended, the slowest and the memory they took."""
    chance = random.Random(seed)
    call, outcomes = mx.lr_scheduler.FactorScheduler.__call__, Counter()
    before, slowest, errors = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0, {}
    for _ in range(count):
        data = program(chance)
        start = time.process_time()
        try:
            read_states(data)
            outcomes["read"] += 1
        except mx.MXNetError:
            outcomes["refused"] += 1
        except Exception as error:
            outcomes["unexpected"] += 1
            errors[type(error).__name__] = f"{data[:200]!r}: {error}"[:400]
        slowest = max(slowest, time.process_time() - start)
    assert mx.lr_scheduler.FactorScheduler.__call__ is call
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {**outcomes, "slowest": slowest, "grown": grown, "errors": errors}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
