"""`mx predict`, `mx serve` and `mx doctor` on a device."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon, nd
from mxnext_cli import main
from mxnext_cli.models import Predictor, load_model
from tests.device import second_device
from tests.device.cases.comparing import assert_close


@pytest.fixture
def prefix(tmp_path: Path) -> str:
    """Return a saved network."""
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Dense(4, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(3))
    net.initialize(mx.init.Xavier())
    net.hybridize()
    net(nd.ones((2, 5)))
    net.export(str(tmp_path / "net"))
    return str(tmp_path / "net")


def test_predict_on_a_device_equals_cpu(
    prefix: str, last: mx.Context, tmp_path: Path, capsys
) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).standard_normal((4, 5)).astype("f4"))
    answers = []
    for device in ("cpu", f"gpu:{last.device_id}"):
        options = ["--input", str(tmp_path / "rows.npy"), "--device", device, "--json"]
        assert main(["predict", prefix, *options]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    scores = [
        [best["score"] for row in answer for out in row["outputs"].values() for best in out["top"]]
        for answer in answers
    ]
    assert_close([np.array(scores[1])], [np.array(scores[0])])
    assert main(["predict", prefix, "--input", "x.npy", "--device", "gpu:99"]) == 1
    assert "gpu(99)" in capsys.readouterr().err
    assert main(["predict", prefix, "--input", "x.npy", "--device", "tpu"]) == 2
    assert "cpu, gpu or gpu:1" in capsys.readouterr().err


def test_served_batches_are_copied_to_the_device_and_back_once(
    prefix: str, last: mx.Context
) -> None:
    """Parameters are copied once; per batch, inputs and outputs are copied once."""
    args = argparse.Namespace(model=prefix, epoch=None, params=None)
    right = Predictor(load_model(args))
    args.device = f"gpu:{last.device_id}"
    predictor = Predictor(load_model(args))
    rows = {"data": np.ones((2, 5), "float32")}
    assert_close(predictor(rows), right(rows))
    if second_device.is_loaded():
        before = second_device.traffic()
        predictor(rows)
        traffic = second_device.traffic() - before
        assert (traffic.from_host, traffic.to_host, traffic.scalars) == (1, 1, 0)


def test_doctor_lists_devices(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MIN_SECONDS": 0.0, "GPU_SIZE": 16, "ROUNDS": 1, "WARMUP": 1}.items():
        monkeypatch.setattr(f"mxnext_cli.bench.{name}", value)
    main(["doctor", "--bench"])
    said = capsys.readouterr().out
    assert all(f"gpu({i})" in said for i in range(mx.context.num_gpus()))
    lines = [line for line in said.splitlines() if "training step" in line]
    assert [line.split()[0] for line in lines] == ["cpu(0)", "gpu(0)"]
