"""Load damaged files of every format, and count what happens."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import random
import resource
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch

import mxnet as mx
from mxnet.formats import sample_files, tree_file
from mxnet.formats.recordio_file import read_list
from tests.formats.test_params_file import flip_bits, inflate, insert, remove, truncate
from tests.golden import HERE as GOLDEN

MEMORY = 400_000  # kilobytes that reading may take on top
MUTATIONS = (flip_bits, truncate, insert, remove, inflate)


def network() -> mx.gluon.HybridBlock:
    net = mx.gluon.nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(mx.gluon.nn.Conv2D(2, 3, in_channels=1), mx.gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 1, 6, 6)))
    return net


def updater() -> mx.optimizer.Updater:
    schedule = mx.lr_scheduler.FactorScheduler(3)
    made = mx.optimizer.get_updater(mx.optimizer.Adam(lr_scheduler=schedule))
    weight = mx.nd.ones((3, 2))
    made(0, weight * 1, weight)
    return made


def write_samples(folder: pathlib.Path) -> dict[str, tuple[pathlib.Path, Callable]]:
    """Return a good file of every format, and what reads it."""
    net, kept = network(), updater()
    net.export(str(folder / "net"))
    net.save(str(folder / "saved"))
    (folder / "own.states").write_bytes(kept.get_states(dump_optimizer=True))
    for name in ("adam", "adam-optimizer", "sgd-float16-optimizer"):
        (folder / f"{name}.states").write_bytes((GOLDEN / "states" / f"{name}.states").read_bytes())
    with mx.recordio.MXIndexedRecordIO(folder / "a.idx", folder / "a.rec", "w") as file:
        for key in range(6):
            file.write_idx(key, bytes([key]) * (5 * key))
    (folder / "a.lst").write_text("".join(f"{i}\t{i % 2}\tpictures/{i}.jpg\n" for i in range(9)))
    tree_file.write(folder / "run-resume.params", {"epoch": 3, "w": torch.ones(5), "x": (1, "a")})
    (folder / "a.ubyte").write_bytes(bytes([0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 4, *range(12)]))
    (folder / "a.csv").write_text("1,2,3\n4,5,6\n7,8,9\n")
    (folder / "a.libsvm").write_text("1 0:1 2:3\n0 1:2\n1 2:5\n")
    pixels = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    for ending in (".jpg", ".png"):
        record = mx.recordio.pack_img(mx.recordio.IRHeader(0, 1, 1, 0), pixels, 9, ending)
        (folder / f"a{ending}").write_bytes(record[24:])

    def states(path: pathlib.Path) -> None:
        kept.set_states(path.read_bytes())

    def records(path: pathlib.Path) -> None:
        for _ in mx.recordio.MXRecordIO(path, "r", on_error="skip"):
            pass
        list(mx.recordio.MXRecordIO(path, "r"))

    def index(path: pathlib.Path) -> None:
        file = mx.recordio.MXIndexedRecordIO(path, folder / "good.rec", "r")
        for key in file.keys:
            file.read_idx(key)

    def svm(path: pathlib.Path) -> None:
        list(mx.io.LibSVMIter(data_libsvm=str(path), data_shape=(3,), batch_size=1))

    def saved(path: pathlib.Path) -> None:
        net.load(str(path).removesuffix("-model.json"))

    (folder / "good.rec").write_bytes((folder / "a.rec").read_bytes())
    readers: dict[str, Callable] = {
        "net-0000.params": lambda p: mx.nd.load(str(p)),
        "net-symbol.json": lambda p: mx.sym.load(str(p)),
        "saved-model.params": lambda p: net.load_parameters(str(p)),
        "saved-model.json": saved,
        "own.states": states,
        "adam.states": states,
        "adam-optimizer.states": states,
        "sgd-float16-optimizer.states": states,
        "a.rec": records,
        "a.idx": index,
        "a.lst": read_list,
        "run-resume.params": tree_file.read,
        "a.ubyte": lambda p: sample_files.read_idx(p, 2),
        "a.csv": lambda p: list(
            mx.io.CSVIter(data_csv=str(p), data_shape=(3,), batch_size=1)
        ),
        "a.libsvm": svm,
        "a.jpg": lambda p: mx.image.imread(str(p)),
        "a.png": lambda p: mx.image.imread(str(p)),
    }  # fmt: skip
    return {name: (folder / name, read) for name, read in readers.items()}


def main(seed: int, count: int) -> dict:
    """Damage each file `count` times; return how often it was read, refused, or worse."""
    warnings.simplefilter("ignore")
    os.environ["MXNET_IMAGE_MAX_PIXELS"] = "1000000"
    chance = random.Random(seed)
    outcomes: Counter = Counter()
    unexpected: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as place, contextlib.nullcontext():
        samples = write_samples(pathlib.Path(place))
        for _, (path, read) in samples.items():
            read(path)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for name, (path, read) in samples.items():
            good = path.read_bytes()
            for number in range(count):
                raw = bytearray(good)
                for _ in range(chance.choice((1, 1, 2, 4))):
                    if raw:
                        chance.choice(MUTATIONS)(raw, chance)
                path.write_bytes(raw)
                try:
                    read(path)
                    outcomes["read"] += 1
                except mx.MXNetError:
                    outcomes["refused"] += 1
                except Exception as error:
                    outcomes["unexpected"] += 1
                    text = f"{type(error).__name__}: {error}"[:200]
                    unexpected.setdefault(f"{name} {type(error).__name__}", f"{number}: {text}")
            path.write_bytes(good)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {**outcomes, "formats": len(samples), "grown": grown, "errors": unexpected}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
