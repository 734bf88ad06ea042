"""What is known about memory, and giving it back."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.error import MXNetError


def bytes_on_cpu():
    lines = mx.memory_summary().splitlines()
    (line,) = (x for x in lines if x.startswith("cpu "))
    return int(line.split()[-1].replace(",", ""))


def test_summary_counts_arrays_that_are_alive():
    before = bytes_on_cpu()
    kept = mx.nd.zeros((1 << 20,))
    view = kept[10:]
    assert bytes_on_cpu() - before >= 4 << 20
    assert bytes_on_cpu() - before < 8 << 20  # a view shares memory
    del kept, view
    assert bytes_on_cpu() - before < 4 << 20


def test_caches_of_any_device_can_be_emptied():
    mx.cpu().empty_cache()
    if not mx.context.num_gpus():
        with pytest.raises(MXNetError, match="no such GPU"):
            mx.gpu(0).empty_cache()
