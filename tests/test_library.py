"""C++ libraries of operators are refused with a reason."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.error import MXNetError


def test_refusals(tmp_path):
    with pytest.raises(MXNetError, match="does NOT exist"):
        mx.library.load(str(tmp_path / "ops.so"))
    (tmp_path / "ops.txt").touch()
    with pytest.raises(MXNetError, match="is NOT a library file"):
        mx.library.load(str(tmp_path / "ops.txt"))
    (tmp_path / "ops.so").touch()
    with pytest.raises(MXNetError, match=r"mx\.operator\.CustomOp"):
        mx.library.load(str(tmp_path / "ops.so"))
