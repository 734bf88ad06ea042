"""Record the values of MXNet 1.9.1's metrics. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_metrics.py
"""

from __future__ import annotations

import json
import pathlib

import numpy as np

import mxnet as mx

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
random = np.random.RandomState(7)


def scores(*shape):
    values = random.uniform(0.05, 1, shape)
    return (values / values.sum(axis=1, keepdims=True)).round(4)


def classes(*shape, below):
    return random.randint(0, below, shape).astype(float)


def normal(*shape):
    return random.normal(size=shape).round(3)


def binary():
    return [([classes(9, below=2)], [scores(9, 2)]) for _ in range(4)]


def several(n):
    return [([classes(8, below=n)], [scores(8, n)]) for _ in range(3)]


def two_outputs(n):
    return [
        ([classes(5, below=n), classes(6, below=n)], [scores(5, n), scores(6, n)]) for _ in range(2)
    ]


def numbers(label, pred):
    return [([normal(*label)], [normal(*pred)]) for _ in range(3)]


CASES = [
    *(("Accuracy", {}, rows) for rows in (binary(), several(5), two_outputs(3))),
    ("Accuracy", {}, [([classes(7, below=3)], [classes(7, below=3)])]),
    ("Accuracy", {}, [([classes(6, 1, below=4)], [scores(6, 4)])]),
    ("Accuracy", {"axis": 1}, [([classes(2, 5, below=3)], [scores(2, 3, 5)])]),
    ("Accuracy", {"axis": -1}, [([classes(2, 3, below=5)], [scores(2, 3, 5)])]),
    ("Accuracy", {"axis": 0}, [([classes(4, below=3)], [scores(3, 4)])]),
    *(("TopKAccuracy", {"top_k": k}, rows) for k in (2, 3, 5) for rows in (several(6),)),
    ("TopKAccuracy", {"top_k": 2, "name": "best"}, two_outputs(4)),
    *(
        (name, {"average": average}, rows())
        for name in ("F1", "MCC")
        for average in ("macro", "micro")
        for rows in (binary, lambda: two_outputs(2))
    ),
    ("F1", {}, [([np.zeros(3)], [np.array([[0.9, 0.1]] * 3)])]),
    ("MCC", {}, [([np.zeros(3)], [np.array([[0.9, 0.1]] * 3)])]),
    ("PCC", {}, binary()),
    ("PCC", {}, several(4)),
    ("PCC", {}, two_outputs(3)),
    ("PCC", {}, binary() + several(5)),
    ("PCC", {}, [([classes(9, below=3)], [classes(9, below=4)])]),
    ("PCC", {}, [([np.zeros(3)], [np.array([[0.9, 0.1]] * 3)])]),
    ("Perplexity", {"ignore_label": None}, several(5)),
    ("Perplexity", {"ignore_label": 0}, several(3)),
    ("Perplexity", {"ignore_label": 1}, two_outputs(3)),
    ("Perplexity", {"ignore_label": None}, [([np.array([0.0, 9, -3])], [scores(3, 4)])]),
    ("Perplexity", {"ignore_label": None}, [([np.zeros(2)], [np.array([[0.0, 1], [1, 0]])])]),
    *(
        (name, {}, numbers(label, pred))
        for name in ("MAE", "MSE", "RMSE")
        for label, pred in (
            [(6,), (6,)],
            [(6,), (6, 1)],
            [(6, 1), (6,)],
            [(4, 3), (4, 3)],
            [(4,), (4, 3)],
            [(2, 3, 2), (2, 3, 2)],
        )
    ),
    *(("CrossEntropy", kw, several(4)) for kw in ({}, {"eps": 0.01})),
    *(("NegativeLogLikelihood", kw, several(4)) for kw in ({}, {"eps": 0.01})),
    ("CrossEntropy", {}, two_outputs(3)),
    ("NegativeLogLikelihood", {}, [([classes(5, 1, below=3)], [scores(5, 3)])]),
    ("CrossEntropy", {}, [([np.zeros(2)], [np.array([[0.0, 1], [1, 0]])])]),
    *(
        ("PearsonCorrelation", {"average": average}, numbers(shape, shape))
        for average in ("macro", "micro")
        for shape in ((7,), (4, 3))
    ),
    ("PearsonCorrelation", {}, [([np.ones(4)], [normal(4)])]),
    *((name, {}, [([], [normal(5), normal(2, 3)])] * 2) for name in ("Loss", "Torch", "Caffe")),
]


def measured(metric):
    return [metric.get()[0], float(metric.get()[1]), float(metric.get_global()[1])]


def main():
    """Write [metric, arguments, batches, (name, local, global) after each, config]."""
    rows = []
    for name, arguments, batches in CASES:
        metric = getattr(mx.metric, name)(**arguments)
        values = [measured(metric)]
        for i, (labels, preds) in enumerate(batches):
            if i == len(batches) - 1:
                metric.reset_local()
            metric.update([mx.nd.array(x) for x in labels], [mx.nd.array(x) for x in preds])
            values.append(measured(metric))
        plain = [[[x.tolist() for x in part] for part in batch] for batch in batches]
        rows.append([name, arguments, plain, values, metric.get_config()])
    (DATA / "metrics.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    print(len(rows), "metrics")


if __name__ == "__main__":
    main()
