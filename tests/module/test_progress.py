"""The live line of training."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest

import mxnet as mx
from mxnet.module import progress
from mxnet.module.progress import Progress, batches_of, clock


class Terminal(io.StringIO):
    def isatty(self):
        return True


METRIC = SimpleNamespace(get_name_value=lambda: [("accuracy", 0.5)])
DATA = SimpleNamespace(num_data=40, batch_size=4)


def test_it_tells_how_far_how_fast_how_good_how_long(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    stream = Terminal()
    bar = Progress(None, DATA, 0, 2, stream)
    bar.start(0)
    now[0] += 2
    bar.step(METRIC)
    line = stream.getvalue()
    assert line.endswith("Epoch[0] 1/10  2 samples/s  accuracy=0.5000  ETA 0:38")
    bar.clear()
    assert stream.getvalue() == line + progress.CLEAR


def test_it_is_silent_where_nobody_watches():
    stream = io.StringIO()
    bar = Progress(None, DATA, 0, 2, stream)
    bar.start(0)
    bar.step(METRIC)
    bar.clear()
    assert stream.getvalue() == ""


def test_it_learns_how_many_batches_there_are(monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_EVERY", -1)
    stream = Terminal()
    bar = Progress(True, SimpleNamespace(), 0, 2, stream)
    for epoch in (0, 1):
        bar.start(epoch)
        for _ in range(3):
            bar.step(METRIC)
    assert "Epoch[0] 3  " in stream.getvalue()
    assert "Epoch[1] 3/3  " in stream.getvalue()
    assert "batches/s" in stream.getvalue()


@pytest.mark.parametrize(("handle", "count"), [("pad", 3), ("discard", 2), ("roll_over", 2)])
def test_iterators_tell_their_batches(handle, count):
    data = mx.io.NDArrayIter(np.ones((5, 1)), batch_size=2, last_batch_handle=handle)
    assert batches_of(data) == count == len(list(data))
    assert batches_of(mx.io.ResizeIter(data, 7)) == 7


def test_clock():
    assert [clock(s) for s in (0, 59.6, 3600)] == ["0:00", "1:00", "1:00:00"]


def test_fit_shows_it_on_a_terminal_and_keeps_log_lines_apart(monkeypatch):
    monkeypatch.setattr(progress, "SHOWN_EVERY", -1)
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    data = mx.io.NDArrayIter(np.ones((8, 2)), np.zeros(8), 4)
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    mod = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    mod.fit(data, num_epoch=1, batch_end_callback=lambda p: stream.write("said\n"))
    shown = stream.getvalue()
    assert "Epoch[0] 2/2" in shown
    for line in shown.split("\n")[:-1]:
        assert line.endswith(progress.CLEAR + "said")
