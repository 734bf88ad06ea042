"""GluonCV can be imported with torch 2, before or after MXNext."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

INIT = """
from .check import _require_mxnet_version, _require_pytorch_version

_require_mxnet_version()
try:
    _require_pytorch_version("1.4.0", "2.0.0")
    found_torch = True
except ImportError:
    found_torch = False
"""
CHECK = """
def _require_mxnet_version():
    import mxnet

def _require_pytorch_version(lowest, highest):
    import torch
    if tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 0):
        raise RuntimeError("Legacy torch detected")

def untouched():
    return "as it was"
"""


@pytest.mark.parametrize("first", ["mxnet", "gluoncv"])
def test_gluoncv_skips_its_torch_code(tmp_path, first):
    package = tmp_path / "gluoncv"
    package.mkdir()
    (package / "__init__.py").write_text(INIT)
    (package / "check.py").write_text(CHECK)
    program = textwrap.dedent(f"""
        import {first}
        import gluoncv, gluoncv.check, torch
        assert not gluoncv.found_torch
        assert gluoncv.check.untouched() == "as it was"
        assert gluoncv.check.__file__.endswith("check.py")
    """)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{program}"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_unrelated_imports_are_unchanged():
    import email.charset

    assert type(email.charset.__spec__.loader).__name__ == "SourceFileLoader"
