"""Short programs on `gluon.data` that run in MXNet 1.9.1 and in MXNext.

`record_data.py` writes MXNet's answers; `tests/gluon/data` compares.
"""

from __future__ import annotations

import numpy as np


def to_json(mx, value):
    """Return an answer in JSON's words: values, types and shapes, not devices."""
    if isinstance(value, mx.nd.NDArray):
        return ["array", to_json(mx, value.asnumpy())]
    if isinstance(value, np.ndarray):
        return ["numpy", str(value.dtype), list(value.shape), value.ravel().tolist()]
    if isinstance(value, np.generic):
        return ["number", value.item()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *[to_json(mx, item) for item in value]]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return ["number", value]
    return value


def answer(mx, name):
    """Return what a program gives, or the kind of error it ends in."""
    try:
        return to_json(mx, PROGRAMS[name](mx))
    except Exception as error:
        kinds = (IndexError, TypeError, ValueError, AssertionError, NotImplementedError)
        # MXNet answers some questions with a KeyError of a NumPy type; only that it fails counts.
        return ["fails", next((k.__name__ for k in kinds if isinstance(error, k)), "any")]


def numbers(mx):
    return mx.gluon.data.SimpleDataset(list(range(10)))


def pairs(mx):
    rows = mx.nd.arange(10).reshape((5, 2))
    return mx.gluon.data.ArrayDataset(rows, np.arange(5, dtype="int32"))


def everything(data):
    return [data[i] for i in range(len(data))]


def batches(*args, **kwargs):
    def run(mx):
        dataset = args[0](mx) if callable(args[0]) else args[0]
        loader = mx.gluon.data.DataLoader(dataset, *args[1:], **kwargs)
        return [len(loader), *loader]

    return run


def epochs(last_batch):
    def run(mx):
        sampler = mx.gluon.data.SequentialSampler(10)
        sampler = mx.gluon.data.BatchSampler(sampler, 3, last_batch)
        return [x for _ in range(4) for x in (len(sampler), list(sampler))]

    return run


def batchified(make):
    def run(mx):
        return mx.gluon.data.dataloader.default_batchify_fn(make(mx))

    return run


def add(x, y):
    return x + y


def double(x):
    return x * 2


def swapped(x, y):
    return y, x


PROGRAMS = {
    # samplers
    "sequential": lambda mx: list(mx.gluon.data.SequentialSampler(3, 2)),
    "random": lambda mx: sorted(mx.gluon.data.RandomSampler(6)),
    "filter sampler": lambda mx: list(mx.gluon.data.FilterSampler(lambda x: x > 6, numbers(mx))),
    "keep": epochs("keep"),
    "discard": epochs("discard"),
    "rollover": epochs("rollover"),
    "unknown last batch": epochs("other"),
    "interval": lambda mx: list(mx.gluon.contrib.data.IntervalSampler(13, 3)),
    "interval once": lambda mx: list(mx.gluon.contrib.data.IntervalSampler(13, 3, rollover=False)),
    "interval lengths": lambda mx: [
        len(mx.gluon.contrib.data.IntervalSampler(13, 3, roll)) for roll in (True, False)
    ],
    "interval too long": lambda mx: mx.gluon.contrib.data.IntervalSampler(3, 4),
    # data sets
    "array dataset": lambda mx: everything(pairs(mx)),
    "array dataset, last": lambda mx: pairs(mx)[-1],
    "array dataset, slice": lambda mx: pairs(mx)[1:3],
    "array dataset, outside": lambda mx: pairs(mx)[7],
    "array dataset, one vector": lambda mx: mx.gluon.data.ArrayDataset(mx.nd.array([1, 2]))[1],
    "array dataset, one matrix": lambda mx: mx.gluon.data.ArrayDataset(mx.nd.ones((3, 2)))[1],
    "array dataset, lengths differ": lambda mx: mx.gluon.data.ArrayDataset([1, 2], [1]),
    "array dataset, nothing": lambda mx: mx.gluon.data.ArrayDataset(),
    "filter": lambda mx: everything(numbers(mx).filter(lambda x: x % 3 == 0)),
    **{
        f"shard {i} of {n}": lambda mx, n=n, i=i: everything(numbers(mx).shard(n, i))
        for n, i in [(3, 0), (3, 1), (3, 2), (1, 0), (4, 3), (12, 3), (12, 11), (3, 3), (3, -1)]
    },
    **{f"take {n}": lambda mx, n=n: everything(numbers(mx).take(n)) for n in (3, 0, 100, None, -1)},
    "take, last": lambda mx: numbers(mx).take(3)[-1],
    "sample": lambda mx: everything(numbers(mx).sample(mx.gluon.data.SequentialSampler(4, 2))),
    "sample, a list": lambda mx: numbers(mx).sample([1]),
    "transform": lambda mx: everything(numbers(mx).transform(double)),
    "transform now": lambda mx: everything(numbers(mx).transform(double, lazy=False)),
    "transform pairs": lambda mx: everything(pairs(mx).transform(swapped)),
    "transform pairs, too few": lambda mx: pairs(mx).transform(double)[0],
    "transform first": lambda mx: everything(pairs(mx).transform_first(double)),
    "transform first of one": lambda mx: everything(numbers(mx).transform_first(double)),
    "transform list": lambda mx: mx.gluon.data.SimpleDataset([[1, 2]]).transform(len)[0],
    "base length": lambda mx: len(mx.gluon.data.Dataset()),
    "base sample": lambda mx: mx.gluon.data.Dataset()[0],
    # batchify
    "batch of floats": batchified(lambda mx: [1.0, 2.0]),
    "batch of integers": batchified(lambda mx: [1, 2]),
    "batch of truths": batchified(lambda mx: [True, False]),
    **{
        f"batch of {t}": batchified(lambda mx, t=t: [np.dtype(t).type(3)] * 2)
        for t in ("float64", "float32", "float16", "int32", "uint8", "int8", "int64")
    },
    "batch of numpy arrays": batchified(lambda mx: [np.ones((2, 3), "int8")] * 2),
    "batch of arrays": batchified(lambda mx: [mx.nd.ones((2, 3), dtype="int32")] * 2),
    "batch of small arrays": batchified(lambda mx: [mx.nd.array([1]), mx.nd.array([2])]),
    "batch of tuples": batchified(lambda mx: [(1, 2.0), (3, 4.0)]),
    "batch of lists": batchified(lambda mx: [[1, 2.0], [3, 4.0]]),
    "batch of nested tuples": batchified(lambda mx: [((1, 2), 3), ((4, 5), 6)]),
    "batch of mixed tuples": batchified(lambda mx: [(mx.nd.ones((2,)), 1, np.ones(2))] * 2),
    "batch of different arrays": batchified(lambda mx: [mx.nd.ones((2,)), mx.nd.ones((3,))]),
    "batch of different lists": batchified(lambda mx: [[1], [1, 2]]),
    "batch of texts": batchified(lambda mx: ["a", "b"]),
    # loaders
    "load pairs": batches(pairs, 2),
    "load array": batches(lambda mx: mx.nd.arange(6).reshape((3, 2)), 2),
    "load vector": batches(lambda mx: mx.nd.arange(3), 2),
    "load numpy": batches(np.arange(6).reshape((3, 2)), 2),
    "load numpy vector": batches(np.arange(3.0), 2),
    "load list": batches([5, 6, 7], 2),
    "load one array": batches(lambda mx: mx.gluon.data.ArrayDataset(mx.nd.arange(3)), 2),
    "load taken": batches(lambda mx: pairs(mx).take(3), 2),
    "load filtered": batches(lambda mx: pairs(mx).filter(lambda x, *y: True), 2),
    "load shard": batches(lambda mx: pairs(mx).shard(2, 1), 1),
    "load with lists": batches(
        lambda mx: mx.gluon.data.ArrayDataset([1, 2, 3], [[1], [2], [3]]), 2
    ),
    "load transformed": batches(lambda mx: pairs(mx).transform_first(double), 2),
    "load, discard": batches([1, 2, 3], 2, last_batch="discard"),
    "load, rollover": batches([1, 2, 3], 2, last_batch="rollover"),
    "load, batch sampler": batches([5, 6, 7], batch_sampler=[[2, 0], [1]]),
    "load, sampler": batches([5, 6, 7], 2, sampler=[2, 0, 1]),
    "load, sampler with negatives": batches(pairs, 2, sampler=[-1, 0, -2]),
    "load, sampler outside": batches(pairs, 2, sampler=[9]),
    "load, batchify": batches([5, 6, 7], 2, batchify_fn=sum),
    "load, no size": batches([1]),
    "load, sampler and shuffle": batches([1], 1, True, [0]),
    "load, batch sampler and size": batches([1], 1, batch_sampler=[[0]]),
    "load, batch sampler and last": batches([1], batch_sampler=[[0]], last_batch="keep"),
    "load, timeout": batches([1], 1, timeout=0),
    "load, unknown last batch": batches([1], 1, last_batch="other"),
    "load, fewer than none": batches([1, 2], 1, num_workers=-1),
}

# -- transformations of one picture -------------------------------------------------------------


def picture(mx, dtype="uint8"):
    random = np.random.RandomState(0)
    smooth = np.linspace(0, 200, 13 * 17 * 3).reshape(13, 17, 3)
    return mx.nd.array(smooth + random.randint(0, 50, (13, 17, 3)), dtype=dtype)


TRANSFORMS = {
    "Cast": lambda t: t.Cast("float16"),
    "ToTensor": lambda t: t.ToTensor(),
    "Normalize": lambda t: t.Compose([t.ToTensor(), t.Normalize((0.4, 0.5, 0.6), (0.1, 0.2, 0.3))]),
    "Normalize one": lambda t: t.Compose([t.ToTensor(), t.Normalize(0.4, 0.1)]),
    "Rotate": lambda t: t.Compose([t.ToTensor(), t.Rotate(30)]),
    "Rotate in": lambda t: t.Compose([t.ToTensor(), t.Rotate(30, zoom_in=True)]),
    "Rotate out": lambda t: t.Compose([t.ToTensor(), t.Rotate(-75, zoom_out=True)]),
    "CropResize": lambda t: t.CropResize(2, 3, 8, 5),
    "CropResize size": lambda t: t.CropResize(2, 3, 8, 5, (6, 7), 1),
    "CenterCrop": lambda t: t.CenterCrop(6),
    "CenterCrop pair": lambda t: t.CenterCrop((7, 4)),
    "CenterCrop large": lambda t: t.CenterCrop((34, 5)),
    "CenterCrop cubic": lambda t: t.CenterCrop((34, 30), interpolation=2),
    "Resize": lambda t: t.Resize(8),
    "Resize pair": lambda t: t.Resize((9, 21)),
    "Resize keep": lambda t: t.Resize(8, keep_ratio=True),
    "Resize nearest": lambda t: t.Resize((9, 21), interpolation=0),
    "Resize cubic": lambda t: t.Resize((9, 21), interpolation=2),
    "RandomBrightness none": lambda t: t.RandomBrightness(0),
    "RandomContrast none": lambda t: t.RandomContrast(0),
    "RandomSaturation none": lambda t: t.RandomSaturation(0),
    "RandomLighting none": lambda t: t.RandomLighting(0),
    "RandomApply always": lambda t: t.RandomApply(t.ToTensor(), 1.0),
    "RandomApply never": lambda t: t.RandomApply(t.ToTensor(), 0.0),
    "RandomResizedCrop whole": lambda t: t.RandomResizedCrop((17, 13), (1, 1), (17 / 13, 17 / 13)),
    "RandomRotation never": lambda t: t.RandomRotation((-5, 5), rotate_with_proba=0),
    "Compose": lambda t: t.Compose(
        [t.CenterCrop(8), t.Resize(5), t.ToTensor(), t.Normalize(0.5, 0.2), t.Cast("float64")]
    ),
    "Compose of none": lambda t: t.Compose([]),
}
