"""Metrics give MXNet 1.9.1's values, batch by batch, local and global."""

from __future__ import annotations

import json
import math
import pathlib

import numpy as np
import pytest

import mxnet as mx
from mxnet import metric as metrics

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "metrics.json"
ROWS = json.loads(GOLDEN.read_text())
IDS = [f"{i}-{row[0]}" for i, row in enumerate(ROWS)]


def batches_of(rows):
    for labels, preds in rows:
        yield [mx.nd.array(x) for x in labels], [mx.nd.array(x) for x in preds]


def is_micro_correlation(name, arguments):
    return name == "PearsonCorrelation" and arguments.get("average") == "micro"


def compare(metric, wanted, name, arguments):
    label, local, whole = wanted
    assert metric.get() == (label, pytest.approx(local, rel=1e-5, abs=1e-6, nan_ok=True))
    # MXNet's global micro correlation is always 0; ours is that of all samples.
    if not is_micro_correlation(name, arguments):
        found = metric.get_global()
        assert found == (label, pytest.approx(whole, rel=1e-5, abs=1e-6, nan_ok=True))


@pytest.mark.parametrize(("name", "arguments", "batches", "values", "config"), ROWS, ids=IDS)
def test_values_as_mxnet(name, arguments, batches, values, config):
    metric = getattr(metrics, name)(**arguments)
    compare(metric, values[0], name, arguments)
    for i, (labels, preds) in enumerate(batches_of(batches)):
        if i == len(batches) - 1:
            metric.reset_local()
        metric.update(labels, preds)
        compare(metric, values[i + 1], name, arguments)
    assert metric.get_config() == config
    json.dumps(metric.get_name_value())


@pytest.mark.parametrize(("name", "arguments", "batches", "values", "config"), ROWS, ids=IDS)
def test_sums_that_wait_on_a_device_are_the_same(
    name, arguments, batches, values, config, monkeypatch
):
    monkeypatch.setattr("mxnet.metric.base.stays_on_device", lambda tensor: True)
    metric = getattr(metrics, name)(**arguments)
    for i, (labels, preds) in enumerate(batches_of(batches)):
        if i == len(batches) - 1:
            metric.reset_local()
        metric.update(labels, preds)
    compare(metric, values[-1], name, arguments)


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "uint8"])
def test_labels_and_predictions_of_any_type(dtype):
    label, pred = mx.nd.array([1, 2, 3], dtype=dtype), mx.nd.array([2, 1, 3], dtype=dtype)
    for name, wanted in (("mae", 2 / 3), ("mse", 2 / 3), ("acc", 1 / 3), ("pearsonr", 0.5)):
        metric = mx.metric.create(name)
        metric.update(label, pred)
        assert metric.get()[1] == pytest.approx(wanted)


def test_a_diverged_network_gives_nan_and_no_error():
    pred = mx.nd.array(np.full((2, 3), np.nan))
    for name in ("acc", "ce", "mcc", "pcc"):
        metric = mx.metric.create(name)
        metric.update(mx.nd.array([0, 1]), pred)
        metric.get()
    metric = mx.metric.Perplexity(None)
    metric.update(mx.nd.array([0, 1]), pred)
    assert math.isnan(metric.get()[1])
