"""``from mxnet.X import *`` brings what it brings in MXNet 1.9.1, imported modules included."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

import mxnet as mx
from tests.golden import record_star_names as recorder

GOLDEN = json.loads(pathlib.Path(recorder.__file__).with_name("star_names.json").read_text())
# Not here: OpenCV and requests are imported on use only; handles of C objects do not exist.
ABSENT = {
    "image": {"cv2"},
    "image.image": {"cv2"},
    "initializer": {"random"},
    "io": {"io", "utils"},
    "kvstore": {"base", "kvstore", "kvstore_server"},
    "model": {"SKLEARN_INSTALLED"},
    "operator": {"c_int_p"},
    "profiler": {"profiler_kvstore_handle"},
    "recordio": {"cv2"},
    "rtc": {"CudaKernelHandle", "CudaModuleHandle"},
    "test_utils": {"requests"},
}


@pytest.mark.parametrize("module", sorted(GOLDEN))
def test_a_star_brings_the_names_of_mxnet(module):
    missing = set(GOLDEN[module].split()) - set(recorder.names(module))
    assert missing <= ABSENT.get(module, set())


def test_names_are_what_they_are_in_mxnet():
    found: dict = {}
    exec("from mxnet.metric import *\nfrom mxnet.autograd import *", found)
    assert found["numpy"] is np
    assert found["NDArray"] is mx.nd.NDArray
    assert found["Accuracy"] is mx.metric.Accuracy
    assert mx.callback.save_checkpoint is mx.model.save_checkpoint
