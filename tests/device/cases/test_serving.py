"""`mx serve`: each model runs on its device; models on one device run alternately."""

from __future__ import annotations

import asyncio
import json
import threading

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd, sym

pytest.importorskip("msgspec")
pytest.importorskip("prometheus_client")

from mxnext_cli.models import Predictor
from mxnext_cli.serve.limits import Limits
from mxnext_cli.serve.monitoring import Metrics
from mxnext_cli.serve.repository import LoadedModel, Repository

LIMIT = 60
ROWS = {"data": np.array([[1, 2, 3]], np.float32)}


def write_model(folder, device: str) -> str:
    folder.mkdir()
    net = sym.broadcast_mul(sym.var("data"), sym.var("scale", shape=(1, 3)), name="out")
    net.save(str(folder / "times-symbol.json"))
    nd.save(str(folder / "times-0000.params"), {"arg:scale": nd.full((1, 3), 2)})
    (folder / "serve.json").write_text(json.dumps({"shape": {"data": [3]}, "device": device}))
    return f"{folder.name}={folder}"


@pytest.fixture
def load(tmp_path):
    def load_models(*devices: str, option: str | None = None) -> list[LoadedModel]:
        texts = [write_model(tmp_path / f"m{i}", device) for i, device in enumerate(devices)]
        repository = Repository(texts, Limits(), Metrics(), device=option)
        repository.load()
        return repository.models

    return load_models


def test_each_model_runs_on_its_device(load):
    models = load("cpu", "gpu:0", "gpu(1)")
    assert [m.model.ctx for m in models] == [mx.cpu(), mx.gpu(0), mx.gpu(1)]
    assert [m.describe()["device"] for m in models] == ["cpu(0)", "gpu(0)", "gpu(1)"]
    for model in models:
        parameters = model.predictor._parameters.values()
        assert {array.ctx for array in parameters} == {model.model.ctx}
        assert asyncio.run(model.batcher.run(ROWS))[0].tolist() == [[2, 4, 6]]


def test_device_option_overrides_the_settings(load):
    assert [m.model.ctx for m in load("cpu", "gpu:0", option="gpu:1")] == [mx.gpu(1)] * 2


def test_models_on_one_gpu_run_alternately(load, monkeypatch):
    """While a batch of one model runs, the other model waits off the event loop."""
    first, second, other, on_cpu = load("gpu:0", "gpu:0", "gpu:1", "cpu")
    is_running, may_end = threading.Event(), threading.Event()
    call = Predictor.__call__

    def hold(self, inputs):
        if self is first.predictor:
            is_running.set()
            assert may_end.wait(LIMIT)
        return call(self, inputs)

    monkeypatch.setattr(Predictor, "__call__", hold)

    async def run() -> None:
        held = asyncio.ensure_future(first.batcher.run(ROWS))
        assert await asyncio.to_thread(is_running.wait, LIMIT)
        waiting = asyncio.ensure_future(second.batcher.run(ROWS))
        for free in (other, on_cpu):
            await free.batcher.run(ROWS)
        assert not waiting.done()
        may_end.set()
        assert [(await task)[0].tolist() for task in (held, waiting)] == [[[2, 4, 6]]] * 2

    asyncio.run(asyncio.wait_for(run(), LIMIT))
