"""Record the log lines of MXNet 1.9.1's callbacks. Run inside an MXNet 1.9.1 environment:

python tests/golden/record/record_callbacks.py
"""

from __future__ import annotations

import collections
import json
import logging
import pathlib
import time

import mxnet as mx

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
BatchEndParam = collections.namedtuple("BatchEndParam", "epoch nbatch eval_metric locals")
CASES = [
    # callback, arguments, metric, batches of each epoch, seconds of a batch
    ["Speedometer", [32], {"frequent": 3}, ["acc", "ce"], [8, 7], 0.5],
    ["Speedometer", [32, 3, False], {}, ["acc", "ce"], [8, 7], 0.5],
    ["Speedometer", [17, 2], {}, "acc", [6], 0.3],
    ["Speedometer", [17, 2], {"auto_reset": False}, "acc", [6, 1, 5], 0.3],
    ["Speedometer", [32, 2], {}, None, [5], 0.7],
    ["Speedometer", [32, 2], {}, None, [5], 0],
    ["ProgressBar", [5], {"length": 10}, None, [6], 1],
    ["ProgressBar", [7], {}, None, [8], 1],
    ["ProgressBar", [3, 5], {}, None, [4], 1],
    ["log_train_metric", [2], {}, ["acc", "ce"], [5], 1],
    ["log_train_metric", [2, True], {}, "acc", [5, 4], 1],
    ["log_train_metric", [2], {}, None, [3], 1],
    ["LogValidationMetricsCallback", [], {}, ["acc", "ce"], [2, 2], 1],
    ["LogValidationMetricsCallback", [], {}, None, [2], 1],
]


def lines(mx, setattr_time, case, log):
    """Drive one callback through its epochs with a clock of our own; return what it logged."""
    name, args, kwargs, metric, epochs, seconds = case
    now = [1000.0]
    setattr_time(lambda: now[0])
    callback = getattr(mx.callback, name)(*args, **kwargs)
    metric = mx.metric.create(metric) if metric else None
    log.clear()
    for epoch, batches in enumerate(epochs):
        for nbatch in range(batches):
            now[0] += seconds
            if metric is not None:
                label = mx.nd.array([1, nbatch % 2])
                metric.update([label], [mx.nd.array([[0.25, 0.75], [0.5, 0.5]])])
            callback(BatchEndParam(epoch, nbatch, metric, {}))
    return list(log)


class Listener(logging.Handler):
    """Keeps messages."""

    def __init__(self):
        super().__init__()
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def main():
    """Write [case, lines]."""
    listener = Listener()
    logging.getLogger().addHandler(listener)
    logging.getLogger().setLevel(logging.INFO)

    def set_time(clock):
        time.time = clock

    rows = [[case, lines(mx, set_time, case, listener.messages)] for case in CASES]
    (DATA / "callbacks.json").write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    print(len(rows), "callbacks")


if __name__ == "__main__":
    main()
