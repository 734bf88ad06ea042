"""Contents of the operator namespaces."""

from __future__ import annotations

import inspect

import pytest

import mxnet as mx
from mxnet.ops import registry
from tests.programs import run_program

NAMESPACES = ["contrib", "image", "linalg", "op", "random", "sparse"]


@pytest.mark.parametrize("root", [mx.nd, mx.sym], ids=["nd", "sym"])
def test_namespace_dicts_contain_their_functions(root):
    """Programs iterate over ``mx.nd.__dict__`` to wrap every function."""
    assert inspect.isfunction(vars(root)["dot"]) and inspect.isfunction(vars(root)["Custom"])
    for module in (root, *(getattr(root, name) for name in NAMESPACES)):
        assert set(dir(module)) == set(vars(module))


def test_namespaces_contain_operators_right_after_import(tmp_path):
    code = (
        "import mxnet as mx\n"
        "assert {'dot', 'Convolution', 'Custom'} <= {*vars(mx.nd)} & {*vars(mx.sym)}\n"
        "assert 'box_nms' in vars(mx.nd.contrib) and 'gemm2' in vars(mx.sym.linalg)\n"
    )
    done = run_program("-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_internal_functions_are_created_on_access():
    for root in (mx.nd, mx.sym):
        assert root._internal._plus_scalar.op is registry.get("_plus_scalar")
        assert "_plus_scalar" in vars(root._internal)
