"""Record the batches of MXNet 1.9.1's iterators. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_io.py
"""

from __future__ import annotations

import json
import os
import pathlib
import struct
import tempfile

import numpy as np

import mxnet as mx

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
EPOCHS = 4


def samples(count):
    return np.arange(2 * count).reshape(count, 2), np.arange(count)


def array_iter(io, count, **arguments):
    return io.NDArrayIter(*samples(count), **arguments)


def resize_iter(io, count, batch_size, handle, **arguments):
    inner = io.NDArrayIter(*samples(count), batch_size, last_batch_handle=handle)
    return io.ResizeIter(inner, **arguments)


def prefetching_iter(io, count, batch_size, handle):
    inner = [
        io.NDArrayIter(*samples(count), batch_size, last_batch_handle=handle) for _ in range(2)
    ]
    return io.PrefetchingIter(inner, [{"data": "a"}, {"data": "b"}], [{"softmax_label": "c"}] * 2)


def csv_iter(io, count, width, labelled, **arguments):
    rows = "".join(",".join(str(i * 10 + j) for j in range(width)) + "\n" for i in range(count))
    pathlib.Path("data.csv").write_text(rows)
    if labelled:
        pathlib.Path("label.csv").write_text("".join(f"{i}\n" for i in range(count)))
        arguments["label_csv"] = "label.csv"
    return io.CSVIter(data_csv="data.csv", **arguments)


def mnist_iter(io, count, **arguments):
    pixels = (np.arange(count * 6) * 9 % 256).astype("uint8")
    image = struct.pack(">iiii", 2051, count, 3, 2) + pixels.tobytes()
    pathlib.Path("images").write_bytes(image)
    pathlib.Path("labels").write_bytes(struct.pack(">ii", 2049, count) + bytes(range(count)))
    return io.MNISTIter(image="images", label="labels", silent=True, **arguments)


MAKERS = {f.__name__: f for f in (array_iter, resize_iter, prefetching_iter, csv_iter, mnist_iter)}
HANDLES = ("pad", "discard", "roll_over")
CASES = [
    *(
        ["array_iter", {"count": n, "batch_size": size, "last_batch_handle": handle}]
        for n, size in ((7, 1), (7, 2), (7, 3), (7, 4), (7, 7), (7, 8), (6, 3), (5, 6))
        for handle in HANDLES
    ),
    *(
        ["resize_iter", {"count": 7, "batch_size": 3, "handle": h, "size": s, "reset_internal": r}]
        for h in HANDLES
        for s in (2, 5)
        for r in (True, False)
    ),
    *(["prefetching_iter", {"count": 7, "batch_size": 3, "handle": h}] for h in HANDLES),
    *(
        ["csv_iter", {"count": n, "width": 2, "labelled": labelled, "data_shape": [2], **more}]
        for n in (5, 6)
        for labelled in (False, True)
        for more in (
            {"batch_size": 2},
            {"batch_size": 3},
            {"batch_size": 2, "round_batch": False},
            {"batch_size": 4, "dtype": "int32"},
        )
    ),
    ["csv_iter", {"count": 4, "width": 6, "labelled": 1, "data_shape": [1, 2, 3], "batch_size": 2}],
    *(
        ["mnist_iter", {"count": 7, "shuffle": False, **more}]
        for more in (
            {"batch_size": 3},
            {"batch_size": 7, "flat": True},
            {"batch_size": 1, "num_parts": 3, "part_index": 1},
            {"batch_size": 1, "num_parts": 3, "part_index": 2},
        )
    ),
]


def describe(it):
    """Return what an iterator provides, and its batches, as plain lists."""
    provided = [
        [d.name, list(d.shape), np.dtype(d.dtype).name, d.layout]
        for d in [*it.provide_data, *it.provide_label]
    ]
    epochs = []
    for _ in range(EPOCHS):
        epochs.append([])
        for batch in it:
            arrays = [x.asnumpy().tolist() for x in [*batch.data, *batch.label]]
            index = None if batch.index is None else batch.index.tolist()
            epochs[-1].append([arrays, batch.pad, index])
        it.reset()
    return [provided, epochs]


def main():
    """Write [maker, arguments, what is provided, batches of each epoch]."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for maker, arguments in CASES:
            rows.append([maker, arguments, *describe(MAKERS[maker](mx.io, **arguments))])
        os.chdir(DATA)
    (DATA / "iterators.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    print(len(rows), "iterators")


if __name__ == "__main__":
    main()
