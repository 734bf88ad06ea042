"""Shared memory is freed, also if it is exhausted or a worker dies."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import signal
import types

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.gluon.data import transfer, workers

FOLDER = pathlib.Path("/dev/shm")
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no /dev/shm here")


def test_shared_memory_is_removed_if_it_cannot_be_allocated(monkeypatch):
    left = FOLDER / f"torch_{os.getpid()}_123_0"

    def full(tensor):
        left.touch()
        raise RuntimeError(
            f"unable to allocate shared memory(shm) for file </{left.name}>: No space left"
        )

    monkeypatch.setattr(torch.Tensor, "share_memory_", full)
    with pytest.raises(MemoryError, match=r"100 bytes of shared memory.*fewer workers"):
        transfer.share(100)
    assert not left.exists()


def test_remove_leftovers_keeps_memory_of_other_processes():
    mine, other = FOLDER / "torch_99999991_5_0", FOLDER / "torch_99999992_5_0"
    mine.touch()
    other.touch()
    try:
        transfer.remove_leftovers([99999991])
        assert not mine.exists() and other.exists()
    finally:
        other.unlink()


class Deadly(mx.gluon.data.Dataset):
    """A dataset of large samples that kills its process at one of them."""

    def __len__(self):
        return 40

    def __getitem__(self, index):
        if index == 21:
            # As when a process dies between the creation of a file and its removal.
            (FOLDER / f"torch_{os.getpid()}_7_0").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.ones(30_000, np.float32)


def test_a_killed_worker_leaves_no_shared_memory():
    pids = set()
    loader = mx.gluon.data.DataLoader(Deadly(), batch_size=4, num_workers=2)
    with pytest.raises(mx.MXNetError, match="SIGKILL"):
        for _ in loader:
            pids |= {child.pid for child in multiprocessing.active_children()}
    del loader
    assert len(pids) >= 2
    assert not [path for pid in pids for path in FOLDER.glob(f"torch_{pid}_*")]


class Dying:
    """A process that closed its pipes but has not been reaped yet."""

    pid = 17
    exitcode = -signal.SIGKILL
    looks = 0

    def is_alive(self):
        self.looks += 1
        return self.looks < 5


def test_error_names_a_worker_whose_exit_is_pending():
    group = workers.WorkerProcesses.__new__(workers.WorkerProcesses)
    group._iterator = types.SimpleNamespace(_workers=[Dying()], _shutdown_workers=lambda: None)
    named = r"worker 0 \(pid 17\) by signal SIGKILL"
    with pytest.raises(workers.WorkerDied, match=named), group._explained():
        raise EOFError


def test_released_shared_memory_is_reused():
    pieces = transfer.SharedPieces()
    first = pieces.take(1000)
    assert pieces.take(1000) is not first
    transfer.release(first)
    assert pieces.take(900) is first


def test_shared_memory_is_not_reused_while_an_array_uses_it():
    pieces = transfer.SharedPieces()
    array = pieces.empty((10, 10), torch.float32)
    piece = pieces.find(array.data_ptr())
    pieces.finish([piece])
    transfer.release(piece)
    view = array[3:].numpy()
    del array
    assert pieces.take(400) is not piece
    del view
    assert pieces.take(400) is piece


def test_number_of_pooled_shared_memory_blocks_is_bounded():
    pieces = transfer.SharedPieces()
    for size in range(1, 30):
        pieces.take(1000 * size)
    assert len(pieces._kept) == transfer.MAX_PIECES


class Numbers(mx.gluon.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return mx.nd.full((100, 100), index)


class Keeping:
    """Creates batches, and sends the first batch of this process along with each."""

    first = None

    def __call__(self, samples):
        batch = mx.gluon.data.batchify.default_batchify_fn(samples)
        type(self).first = batch if self.first is None else self.first
        return batch, self.first


@pytest.mark.parametrize("batchify", [None, Keeping()])
def test_later_batches_do_not_overwrite_earlier_ones(batchify):
    loader = mx.gluon.data.DataLoader(Numbers(), batch_size=4, num_workers=2, batchify_fn=batchify)
    for _ in range(2):
        for start, batch in zip(range(0, 64, 4), list(loader), strict=True):
            batch, first = (batch, None) if batchify is None else batch
            assert (batch.asnumpy()[:, 5, 5] == np.arange(start, start + 4)).all()
            if first is not None:
                assert first.asnumpy()[0, 0, 0] in (0, 4)
