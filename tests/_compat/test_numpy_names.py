"""Names that NumPy removed are available in listed packages, and NumPy itself is unchanged."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from mxnet._compat.companions import ADJUSTMENTS, OLD_NUMPY, call_after_import

MODULE = """
import numpy as np

KIND = np.float

def width():
    return np.dtype(np.float).itemsize, np.NaN, np.pi
"""


def test_old_numpy_names_are_available_in_listed_packages(tmp_path, monkeypatch):
    package = tmp_path / "package_of_old"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    call_after_import("package_of_old.*", *OLD_NUMPY)
    from package_of_old import inner

    size, nan, pi = inner.width()
    assert (size, pi) == (8, np.pi)
    assert np.isnan(nan)
    assert isinstance(np.ones(1), inner.np.ndarray)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = inner.np.nothing
    assert inner.KIND is float
    assert not hasattr(np, "float")
    assert sys.modules["numpy"] is np is not inner.np


def test_old_numpy_names_are_not_restored_inside_numpy_mxnet_or_torch():
    assert all(name.partition(".")[0] not in ("numpy", "mxnet", "torch") for name in ADJUSTMENTS)
