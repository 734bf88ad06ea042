"""Loggers with MXNet's line headers."""

from __future__ import annotations

import logging
import re

import pytest

import mxnet as mx
from mxnet import log


@pytest.fixture
def name(request):
    yield request.node.name
    logger = logging.getLogger(request.node.name)
    for handler in logger.handlers:
        handler.close()
    logger.handlers.clear()


def test_header_and_colors(name, capsys):
    logger = log.get_logger(name, level=log.DEBUG)
    for level in (logger.debug, logger.info, logger.warning, logger.critical):
        level("told")
    lines = capsys.readouterr().err.splitlines()
    form = r"\x1b\[(\d+)m([A-Z])\d{4} \d\d:\d\d:\d\d \d+ .*test_log.py:test_header_and_colors:\d+\]"
    found = [re.match(form + r"\x1b\[0m told$", line).groups() for line in lines]
    assert found == [("34", "D"), ("32", "I"), ("31", "W"), ("31", "C")]


def test_get_logger_writes_to_a_file_and_adds_one_handler(name, tmp_path):
    logger = log.get_logger(name, filename=str(tmp_path / "x.log"), level=log.INFO)
    assert log.get_logger(name, level=log.ERROR) is logger and len(logger.handlers) == 1
    logger.info("in the file")
    assert (tmp_path / "x.log").read_text() == "in the file\n"


def test_get_logger_without_a_name_keeps_root_handlers():
    before = list(logging.getLogger().handlers)
    assert log.get_logger() is logging.getLogger()
    assert logging.getLogger().handlers == before


def test_getLogger_is_deprecated(name):
    with pytest.warns(DeprecationWarning, match="get_logger"):
        assert log.getLogger(name).name == name


# -- messages do not configure logging, so a later ``logging.basicConfig`` takes effect ----------


def test_log_messages_add_no_root_handler(tmp_path, monkeypatch):
    """``logging.info`` would add one and override the user's configuration."""
    monkeypatch.setattr(logging.root, "handlers", [])
    (tmp_path / "data.zip").write_bytes(b"")
    mx.test_utils.download("http://localhost/data.zip", dirname=str(tmp_path))
    schedule = mx.lr_scheduler.FactorScheduler(step=1, base_lr=0.1)
    mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=schedule)
    mx.rnn.BucketSentenceIter([[1, 2, 3, 4], [1]], 1, buckets=[2])
    mx.init.One().set_verbosity(True)(mx.init.InitDesc("w_weight"), mx.nd.zeros(2))
    assert logging.root.handlers == []
