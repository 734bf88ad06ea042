"""Callbacks and monitors: log lines of MXNet 1.9.1, and checkpoints."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace

import numpy as np
import pytest

import mxnet as mx
import mxnet.symbol as sym
from mxnet.monitor import Monitor
from tests.golden import HERE
from tests.golden.record.record_callbacks import lines

ROWS = json.loads((HERE / "callbacks.json").read_text())


@pytest.mark.parametrize(
    ("case", "wanted"), ROWS, ids=[f"{i}-{row[0][0]}" for i, row in enumerate(ROWS)]
)
def test_log_lines_match_mxnet(case, wanted, monkeypatch, caplog):
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


def test_module_checkpoint_with_a_period_below_one():
    module = Module()
    callback = mx.callback.module_checkpoint(module, "net", 0)
    callback(0)
    callback(1)
    assert module.saved == [("net", 1, False), ("net", 2, False)]


def test_do_checkpoint_writes_symbol_and_parameters(tmp_path):
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


# -- monitor: the rows that MXNet 1.9.1 gives for forward passes --------------------------------


FORWARD = {"fc_output": 7.905694, "act_output": 7.905694}
ARGUMENTS = {"data": 1.0, "fc_weight": 3.0276504, "fc_bias": 1.0}


def executor():
    out = sym.FullyConnected(sym.Variable("data"), num_hidden=2, name="fc")
    out = sym.Activation(out, act_type="relu", name="act")
    exe = out.simple_bind(mx.cpu(), data=(2, 3))
    exe.arg_dict["fc_weight"][:] = np.arange(6).reshape(2, 3)
    exe.arg_dict["data"][:] = 1
    exe.arg_dict["fc_bias"][:] = -1
    return exe


def watched(monitor, batches=1):
    exe = executor()
    monitor.install(exe)
    rows = []
    for _ in range(batches):
        monitor.tic()
        exe.forward(is_train=True)
        rows.append(monitor.toc())
    return rows


def names_and_stats(rows):
    return [(name, pytest.approx(float(stat), rel=1e-6)) for _, name, stat in rows]


def test_monitor_lists_outputs_then_arguments():
    assert names_and_stats(watched(Monitor(1))[0]) == [*FORWARD.items(), *ARGUMENTS.items()]


def test_monitor_interval():
    first, second, third = watched(Monitor(2), 3)
    assert (first[0][0], second, third[0][0]) == (1, [], 3)


def test_monitor_sort():
    found = names_and_stats(watched(Monitor(1, sort=True))[0])
    assert found == sorted([*FORWARD.items(), *ARGUMENTS.items()])


def test_monitor_pattern():
    found = watched(Monitor(1, pattern=".*weight|act.*"))[0]
    assert [name for _, name, _ in found] == ["act_output", "fc_weight"]


def test_monitor_all_includes_inputs():
    found = [name for _, name, _ in watched(Monitor(1, monitor_all=True))[0]]
    assert found.count("data") == 2  # as an input of fc, and as an argument


def test_monitor_stat_func_returning_a_list():
    monitor = Monitor(1, stat_func=lambda x: [x.max(), x.min()], pattern="fc_o")
    assert watched(monitor)[0] == [(1, "fc_output", "11.0\t2.0\t")]


def test_monitor_stat_func_returning_an_array():
    monitor = Monitor(1, stat_func=lambda x: mx.nd.ones((2,)), pattern="fc_o")
    assert watched(monitor)[0] == [(1, "fc_output", "[1. 1.]\t")]


def test_monitor_stat_func_returning_a_float_raises():
    with pytest.raises(TypeError, match="for 'fc_output' it returned float"):
        watched(Monitor(1, stat_func=lambda x: 3.0))


def test_monitor_includes_auxiliary_states():
    exe = sym.BatchNorm(sym.Variable("data"), name="bn").simple_bind(mx.cpu(), data=(2, 3))
    monitor = Monitor(1, pattern=".*moving")
    monitor.install(exe)
    monitor.tic()
    exe.forward()
    assert [name for _, name, _ in monitor.toc()] == ["bn_moving_mean", "bn_moving_var"]


def test_monitor_toc_print(caplog):
    caplog.set_level("INFO")
    monitor, exe = Monitor(1, pattern="fc_o"), executor()
    monitor.install(exe)
    monitor.tic()
    exe.forward()
    monitor.toc_print()
    assert caplog.messages == ["Batch:       1 fc_output                      7.905694\t"]


def test_monitor_toc_without_tic_is_empty():
    assert Monitor(1).toc() == []


def test_invalid_monitor_stat_func_raises_assertion_error():
    executor = mx.sym.relu(mx.sym.var("x")).simple_bind(mx.cpu(), x=(2,))
    monitor = mx.mon.Monitor(1, stat_func=lambda x: 1.0)
    monitor.install(executor)
    monitor.tic()
    executor.forward()
    with pytest.raises(AssertionError, match="stat_func must return an NDArray"):
        monitor.toc()
