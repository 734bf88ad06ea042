"""Features are facts."""

from __future__ import annotations

import pytest
import torch

import mxnet as mx
from mxnet import runtime


def test_features_are_torch_facts():
    features = runtime.Features()
    assert features is runtime.Features()
    assert features.is_enabled("mkldnn") == torch.backends.mkldnn.is_available()
    assert features["CUDA"].enabled == torch.cuda.is_available()
    assert len(features) == 32 and next(iter(features)) == "CUDA"
    assert repr(runtime.Feature("TVM_OP", False)) == "✖ TVM_OP"
    assert [f.name for f in runtime.feature_list()] == list(features)


def test_what_is_not_there_is_not_promised():
    assert not runtime.Features().is_enabled("DIST_KVSTORE")
    with pytest.raises(mx.MXNetError, match="dist_sync"):
        mx.kv.create("dist_sync")


def test_unknown_feature_is_told():
    with pytest.raises(RuntimeError, match="Feature 'NOPE' is unknown, known features are"):
        runtime.Features().is_enabled("NOPE")
