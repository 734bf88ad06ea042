"""Messages never configure logging: a later ``logging.basicConfig`` of the user takes effect."""

from __future__ import annotations

import logging

import mxnet as mx


def test_messages_add_no_handler(tmp_path, monkeypatch):
    """``logging.info`` would add one, and so make the user's configuration void."""
    monkeypatch.setattr(logging.root, "handlers", [])
    (tmp_path / "data.zip").write_bytes(b"")
    mx.test_utils.download("http://localhost/data.zip", dirname=str(tmp_path))
    schedule = mx.lr_scheduler.FactorScheduler(step=1, base_lr=0.1)
    mx.optimizer.SGD(learning_rate=0.5, lr_scheduler=schedule)
    mx.rnn.BucketSentenceIter([[1, 2, 3, 4], [1]], 1, buckets=[2])
    mx.init.One().set_verbosity(True)(mx.init.InitDesc("w_weight"), mx.nd.zeros(2))
    assert logging.root.handlers == []
