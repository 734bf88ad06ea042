"""Kill processes while they save, and look whether what they left is whole and not too old.

Each kind of save writes a version number into every file of its set. A child saves version after
version and reports each one that is complete; it is killed at a random moment. What is loaded then
must be the last reported version or the one after it, the same in all files.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable

import mxnet as mx
from mxnet.formats import tree_file

SIZE = 3000  # elements of an array, so that saving takes a while
Kind = tuple[Callable[[int], None], Callable[[], set[int]]]


def network() -> mx.gluon.HybridBlock:
    net = mx.gluon.nn.Dense(1, in_units=SIZE, use_bias=False)
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, SIZE)))
    return net


def symbol(version: int) -> mx.sym.Symbol:
    return mx.sym.var("x") * version


def version_of(symbol: mx.sym.Symbol) -> int:
    nodes = json.loads(symbol.tojson())["nodes"]
    return int(float(nodes[-1]["attrs"]["scalar"]))


def first(array: mx.nd.NDArray) -> int:
    values = array.asnumpy().ravel()
    assert (values == values[0]).all()
    return int(values[0])


def kinds(folder: str) -> dict[str, Kind]:
    """Return the kinds of saves: what saves a version, and what loads the versions of a set."""
    net, other = network(), network()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd", {"momentum": 0.9})
    with mx.autograd.record():
        net(mx.nd.ones((1, SIZE))).backward()
    trainer.step(1)
    prefix = f"{folder}/net"

    def set_net(version: int) -> None:
        net.weight.set_data(mx.nd.full((1, SIZE), version))

    def save_block(version: int) -> None:
        set_net(version)
        net.save(f"{prefix}-block")

    def load_block() -> set[int]:
        other.load(f"{prefix}-block")
        return {first(other.weight.data())}

    def export(version: int) -> None:
        set_net(version)
        net.export(f"{prefix}-export")

    def load_export() -> set[int]:
        _, args, _ = mx.model.load_checkpoint(f"{prefix}-export", 0)
        return {first(next(iter(args.values())))}

    def save_states(version: int) -> None:
        trainer.set_learning_rate(version)
        trainer.save_states(f"{prefix}.states")

    def load_states() -> set[int]:
        trainer.load_states(f"{prefix}.states")
        return {int(trainer.learning_rate)}

    def save_checkpoint(version: int) -> None:
        params = {"w": mx.nd.full((SIZE,), version)}
        mx.model.save_checkpoint(prefix, 1, symbol(version), params, {})

    def load_checkpoint() -> set[int]:
        loaded, args, _ = mx.model.load_checkpoint(prefix, 1)
        return {version_of(loaded), first(args["w"])}

    def save_records(version: int) -> None:
        with mx.recordio.MXIndexedRecordIO(f"{prefix}.idx", f"{prefix}.rec", "w") as file:
            for key in range(version, version + 40):
                file.write_idx(key, struct.pack("<I", version) * 50)

    def load_records() -> set[int]:
        file = mx.recordio.MXIndexedRecordIO(f"{prefix}.idx", f"{prefix}.rec", "r")
        assert len(file.keys) == 40
        return {file.keys[0], *(struct.unpack("<I", file.read_idx(k)[:4])[0] for k in file.keys)}

    def save_tree(version: int) -> None:
        tree_file.write(f"{prefix}-resume.params", {"version": version, "w": [1] * 500})

    return {
        "nd.save": (
            lambda version: mx.nd.save(f"{prefix}.params", [mx.nd.full((SIZE,), version)]),
            lambda: {first(mx.nd.load(f"{prefix}.params")[0])},
        ),
        "save_checkpoint": (save_checkpoint, load_checkpoint),
        "export": (export, load_export),
        "Block.save": (save_block, load_block),
        "Trainer.save_states": (save_states, load_states),
        "records": (save_records, load_records),
        "resume": (save_tree, lambda: {tree_file.read(f"{prefix}-resume.params")["version"]}),
    }


def save_until_killed(save: Callable[[int], None], version: int, seconds: float) -> int:
    """Save versions in a child and kill it; return the last one that it reported."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            while True:
                version += 1
                save(version)
                os.write(writer, struct.pack("<I", version))
        finally:
            os._exit(1)
    os.close(writer)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as file:
        reported = file.read()
    return struct.unpack("<I", reported[-4:])[0] if reported else version


def main(seed: int, count: int) -> dict:
    """Kill each kind of save `count` times; return how often a set was whole, torn or lost."""
    warnings.simplefilter("ignore")
    os.fsync = lambda handle: None  # a kill loses nothing that the kernel has
    chance, outcomes, wrong = random.Random(seed), Counter(), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, (save, load) in kinds(folder).items():
            save(1)
            version = 1
            for _ in range(count):
                version = save_until_killed(save, version, chance.uniform(0.001, 0.08))
                try:
                    found = load()
                except Exception as error:
                    outcomes["lost"] += 1
                    wrong[name] = f"{type(error).__name__}: {error}"[:300]
                    save(version)
                    continue
                is_whole = len(found) == 1 and version <= min(found) <= version + 1
                outcomes["whole" if is_whole else "torn"] += 1
                if not is_whole:
                    wrong[name] = f"{found} after {version}"
                version = max(version, *found)
            save(version + 1)
            save(version + 2)
        left = [p.name for p in pathlib.Path(folder).iterdir() if p.name.startswith(".")]
    return {**outcomes, "wrong": wrong, "leftovers": left}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
