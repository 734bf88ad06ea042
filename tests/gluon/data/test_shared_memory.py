"""Shared memory is given back, also when it runs out or a worker dies."""

from __future__ import annotations

import os
import pathlib
import signal

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.gluon.data import shared_memory

FOLDER = pathlib.Path("/dev/shm")
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no /dev/shm here")


def test_what_could_not_be_filled_is_removed(monkeypatch):
    left = FOLDER / f"torch_{os.getpid()}_123_0"

    def full(tensor):
        left.touch()
        raise RuntimeError(
            f"unable to allocate shared memory(shm) for file </{left.name}>: No space left"
        )

    monkeypatch.setattr(torch.Tensor, "share_memory_", full)
    with pytest.raises(MemoryError, match=r"100 bytes of shared memory.*fewer workers"):
        shared_memory.share(100)
    assert not left.exists()


def test_only_memory_of_the_named_processes_is_removed():
    mine, other = FOLDER / "torch_99999991_5_0", FOLDER / "torch_99999992_5_0"
    mine.touch()
    other.touch()
    try:
        shared_memory.remove_leftovers([99999991])
        assert not mine.exists() and other.exists()
    finally:
        other.unlink()


class Deadly(mx.gluon.data.Dataset):
    """Makes large samples, and kills its process at one of them."""

    def __len__(self):
        return 40

    def __getitem__(self, index):
        if index == 21:
            # As when a process dies between the creation of a file and its removal.
            (FOLDER / f"torch_{os.getpid()}_7_0").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.ones(30_000, np.float32)


def test_a_killed_worker_leaves_nothing():
    before = set(FOLDER.iterdir())
    loader = mx.gluon.data.DataLoader(Deadly(), batch_size=4, num_workers=2)
    with pytest.raises(mx.MXNetError, match="SIGKILL"):
        list(loader)
    del loader
    assert not {p for p in set(FOLDER.iterdir()) - before if p.name.startswith("torch_")}
