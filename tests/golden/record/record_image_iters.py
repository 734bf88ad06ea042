"""Record batches of MXNet 1.9.1's image iterators. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_image_iters.py
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import sys

import numpy as np

import mxnet as mx

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE.parent / "data"


def load(name):
    place = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    module = importlib.util.module_from_spec(place)
    place.loader.exec_module(module)
    return module


cases, settings = load("image_cases"), load("image_iter_settings")
FILES = DATA / "records"


def write_records():
    plain = mx.recordio.MXIndexedRecordIO(str(FILES / "images.idx"), str(FILES / "images.rec"), "w")
    boxes = mx.recordio.MXIndexedRecordIO(str(FILES / "boxes.idx"), str(FILES / "boxes.rec"), "w")
    for number, shape in enumerate(settings.SHAPES):
        image = cases.pixels(*shape, seed=number)
        header = mx.recordio.IRHeader(0, float(number), 10 * number, 0)
        plain.write_idx(number, mx.recordio.pack_img(header, image, 3, ".png"))
        objects = [[k, 0.1 * k, 0.1, 0.1 * k + 0.3, 0.5 + 0.05 * k] for k in range(number % 3 + 1)]
        label = [4, 5, shape[1], shape[0], *(v for row in objects for v in row)]
        header = mx.recordio.IRHeader(0, label, 10 * number, 0)
        boxes.write_idx(number, mx.recordio.pack_img(header, image, 3, ".png"))
    plain.close()
    boxes.close()


def epochs(iterator, count=1):
    found = []
    for _ in range(count):
        found += list(iterator)
        iterator.reset()
    return found


def main():
    write_records()
    arrays, facts = {}, {}

    def keep(name, batches):
        facts[name] = [
            [b.label[0].asnumpy().tolist(), b.pad, str(np.dtype(b.data[0].dtype))] for b in batches
        ]
        arrays[name] = np.concatenate([b.data[0].asnumpy() for b in batches])

    common = {"batch_size": 7, "preprocess_threads": 1, "verbose": False, "data_shape": (3, 8, 8)}
    record = str(FILES / "images.rec")
    for name, setting in settings.RECORD.items():
        print(name, file=sys.stderr)
        iterator = mx.io.ImageRecordIter(path_imgrec=record, **{**common, **setting})
        keep(name, epochs(iterator))
    record = str(FILES / "boxes.rec")
    for name, setting in settings.DETECTION.items():
        print(name, file=sys.stderr)
        iterator = mx.io.ImageDetRecordIter(path_imgrec=record, **{**common, **setting})
        keep("detection " + name, epochs(iterator))
    for kind, name in (("ImageIter", "images"), ("ImageDetIter", "boxes")):
        for last in ("pad", "discard", "roll_over"):
            iterator = getattr(mx.image, kind)(
                3, (3, 8, 8), path_imgrec=str(FILES / f"{name}.rec"), last_batch_handle=last
            )
            keep(f"{kind} {last}", epochs(iterator, 3))
    np.savez_compressed(DATA / "image_iters.npz", **arrays)
    (DATA / "image_iters.json").write_text(json.dumps(facts))
    print(len(facts), "iterators")


if __name__ == "__main__":
    main()
