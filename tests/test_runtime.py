"""Features are facts."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from mxnet import runtime


def test_features_are_torch_facts():
    features = runtime.Features()
    assert features is runtime.Features()
    assert features.is_enabled("mkldnn") == torch.backends.mkldnn.is_available()
    assert features["CUDA"].enabled == torch.cuda.is_available()
    assert len(features) == 32 and next(iter(features)) == "CUDA"
    assert repr(runtime.Feature("TVM_OP", False)) == "✖ TVM_OP"
    assert [f.name for f in runtime.feature_list()] == list(features)


def test_distributed_stores_need_a_launcher():
    enabled = torch.distributed.is_available()
    assert runtime.Features().is_enabled("DIST_KVSTORE") == enabled
    # In a process of its own: another test may have joined a job in this one.
    program = "import mxnet as mx; mx.kv.create('dist_sync')"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1 and "mx launch" in done.stderr


def test_unknown_feature_is_told():
    with pytest.raises(RuntimeError, match="Feature 'NOPE' is unknown, known features are"):
        runtime.Features().is_enabled("NOPE")
