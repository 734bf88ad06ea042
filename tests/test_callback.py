"""Callbacks log MXNet 1.9.1's lines, and save when they should."""

from __future__ import annotations

import json
import pathlib
import time
from types import SimpleNamespace

import pytest

import mxnet as mx
from tests.golden.record_callbacks import lines

ROWS = json.loads((pathlib.Path(__file__).parent / "golden" / "callbacks.json").read_text())


@pytest.mark.parametrize(
    ("case", "wanted"), ROWS, ids=[f"{i}-{row[0][0]}" for i, row in enumerate(ROWS)]
)
def test_lines_as_mxnet(case, wanted, monkeypatch, caplog):
    caplog.set_level("INFO")

    class Log:
        clear = staticmethod(caplog.clear)

        def __iter__(self):
            return iter(caplog.messages)

    def set_time(clock):
        monkeypatch.setattr(mx.callback, "time", SimpleNamespace(time=clock))

    assert lines(mx, set_time, case, Log()) == wanted
    assert time.time() > 1e9


class Module:
    def __init__(self):
        self.saved = []

    def save_checkpoint(self, *args):
        self.saved.append(args)


def test_module_checkpoint_saves_every_period():
    module = Module()
    callback = mx.callback.module_checkpoint(module, "net", 2, True)
    for epoch in range(4):
        callback(epoch, "symbol", {}, {})
    assert module.saved == [("net", 2, True), ("net", 4, True)]


def test_a_period_below_one_means_every_epoch():
    module = Module()
    callback = mx.callback.module_checkpoint(module, "net", 0)
    callback(0)
    callback(1)
    assert module.saved == [("net", 1, False), ("net", 2, False)]


def test_do_checkpoint_writes_network_and_parameters(tmp_path):
    data = mx.sym.Variable("data")
    net = mx.sym.FullyConnected(data, num_hidden=2, name="fc")
    callback = mx.callback.do_checkpoint(str(tmp_path / "net"), 2)
    for epoch in range(4):
        callback(epoch, net, {"fc_weight": mx.nd.ones((2, 2))}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "net-0002.params",
        "net-0004.params",
        "net-symbol.json",
    ]
