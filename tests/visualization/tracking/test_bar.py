"""Progress bars on terminals, in files, in pipes, and disabled."""

from __future__ import annotations

import io
import logging
import re
import subprocess
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet.visualization.tracking import bar, tracker
from mxnet.visualization.tracking.bar import batch_count, choose_style


class Terminal(io.StringIO):
    def isatty(self):
        return True


def module():
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2, name="fc")
    return mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))


def batches():
    return mx.io.NDArrayIter(np.ones((8, 2)), np.zeros(8), 4)


@pytest.fixture(autouse=True)
def no_setting(monkeypatch):
    monkeypatch.delenv("MXNET_PROGRESS", raising=False)


@pytest.mark.parametrize(
    ("setting", "show", "stream", "style"),
    [
        ("auto", None, Terminal(), "bar"),
        ("auto", None, io.StringIO(), "lines"),
        ("auto", False, Terminal(), "off"),
        ("off", None, Terminal(), "off"),
        ("0", None, Terminal(), "off"),
        ("off", True, io.StringIO(), "lines"),
        ("lines", None, Terminal(), "lines"),
        ("bar", None, io.StringIO(), "bar"),
    ],
)
def test_progress_style_by_stream_setting_and_argument(setting, show, stream, style, monkeypatch):
    monkeypatch.setenv("MXNET_PROGRESS", setting)
    assert choose_style(show, stream) == style


def test_unknown_progress_setting_raises(monkeypatch):
    monkeypatch.setenv("MXNET_PROGRESS", "loud")
    with pytest.raises(ValueError, match="must be one of auto, bar, lines, off"):
        choose_style()


def test_progress_on_a_terminal_is_a_bar():
    stream = Terminal()
    assert list(mx.progress([1, 2], "work", file=stream)) == [1, 2]
    assert "\rwork: 100%" in stream.getvalue()


def test_progress_to_a_file_is_plain_text_lines(monkeypatch):
    monkeypatch.setattr(bar, "LINE_SECONDS", 0)
    stream = io.StringIO()
    for _ in mx.progress(range(3), "work", file=stream):
        pass
    lines = stream.getvalue().splitlines()
    assert lines[-1].startswith("work: 100% 3/3")
    assert "\r" not in stream.getvalue() and "\x1b" not in stream.getvalue()
    assert stream.getvalue().isascii()


def test_short_loops_print_nothing_to_a_file():
    stream = io.StringIO()
    bar = mx.progress(range(3), file=stream)
    for _ in bar:
        bar.set_postfix(loss=1)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("handle", "count"), [("pad", 3), ("discard", 2), ("roll_over", 2)])
def test_batch_count_of_iterators(handle, count):
    data = mx.io.NDArrayIter(np.ones((5, 1)), batch_size=2, last_batch_handle=handle)
    assert batch_count(data) == count == len(list(data))
    assert batch_count(mx.io.ResizeIter(data, 7)) == 7
    assert mx.progress(data, show=False).total == count
    assert batch_count(iter([1])) is None


def test_fit_clears_its_bar_before_printed_output(monkeypatch):
    monkeypatch.setattr(tracker, "DRAW_SECONDS", 0)
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    module().fit(
        batches(), num_epoch=1, batch_end_callback=lambda p: print("said", file=sys.stderr)
    )
    shown = stream.getvalue()
    assert "Epoch[0]:   0%|" in shown
    for line in shown.split("\n"):
        if "said" in line:
            assert line.endswith(" \rsaid") or line == "said"
    assert sys.stderr is stream


def test_log_lines_are_not_mixed_with_the_bar(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr("sys.stderr", stream)
    logger = logging.Logger("fit", logging.INFO)
    logger.addHandler(logging.StreamHandler(stream))
    mod = module()
    mod.logger = logger
    mod.fit(batches(), num_epoch=1, initializer=mx.init.Zero())
    shown = [line.rpartition("\r")[2] for line in stream.getvalue().split("\n")]
    assert shown[0] == "Epoch[0] Train-accuracy=1.000000"
    assert shown[1].startswith("Epoch[0] Time cost=")
    assert "Trained" not in stream.getvalue()
    assert logger.handlers[0].filters == []


def test_fit_without_logging_prints_one_summary_line(capsys):
    module().fit(batches(), num_epoch=2)
    line = r"Trained 2 epochs in [\d.:]+( s)?: train_accuracy=1\.0000\n"
    assert re.fullmatch(line, capsys.readouterr().err)
    module().fit(batches(), num_epoch=2, progress=False)
    assert capsys.readouterr().err == ""


PROGRAM = """
import mxnet as mx, numpy as np
data = mx.io.NDArrayIter(np.ones((8, 2)), np.zeros(8), 4)
net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=2)
mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax")).fit(data, num_epoch=2)
for x in mx.progress([1, 2]):
    pass
"""


def test_progress_to_a_pipe_is_plain_text():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, timeout=120, check=True
    )
    assert done.stdout == b""
    assert done.stderr.startswith(b"Trained 2 epochs in ")
    assert done.stderr.count(b"\n") == 1
    assert b"\r" not in done.stderr and b"\x1b" not in done.stderr


@pytest.mark.parametrize("shows_metrics", [False, True])
def test_one_bar_for_all_epochs_if_a_logger_shows_metrics(shows_metrics, monkeypatch):
    class Board(mx.tracking.Logger):
        def log(self, row):
            pass

    Board.shows_metrics = shows_metrics
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    bars = []
    with tracker.Tracker([1, 2], loggers=Board()) as each:
        for epoch in range(3):
            each.start_epoch(epoch)
            bars.append(each._bar)
            assert each._bar.desc.startswith(f"Epoch[{epoch}]") and each._bar.n == 0
            for _ in range(2):
                each.step([])
            each.finish_batches([])
            each.end_epoch(epoch, {"train_loss": 1.0})
    assert len({id(bar) for bar in bars}) == (1 if shows_metrics else 3)
    assert [bar.leave for bar in bars] == [not shows_metrics] * 3
    assert each._bar is None


def test_pair_splits_orders_training_before_validation():
    row = {"train_accuracy": 1.0, "train_loss": 2.0, "val_accuracy": 3.0, "val_loss": 4.0}
    assert list(tracker.pair_splits(row).values()) == [1, 3, 2, 4]
