"""On `mx.np` arrays and in hybridized blocks, NumPy's operators give the same values."""

from __future__ import annotations

from typing import Any

import numpy as onp
import pytest

import mxnet as mx
from mxnet.gluon import HybridBlock
from mxnet.ops import registry
from tests.closeness import assert_equal_up_to_rounding
from tests.grammar.calling import arrays_of, call
from tests.grammar.conftest import sampled
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row

PREFIXES = ("_npi_", "_npx_", "_np_")
NUMPY_KEYS = {
    row.key
    for (family, _), rows in sampled().items()
    if family.startswith("numpy_")
    for row in rows
    if row.inputs
}


def is_numpy_row(row: Row) -> bool:
    """Return whether a row calls an operator of `mx.np` with arrays."""
    return row.key in NUMPY_KEYS


class Calling(HybridBlock):
    """Calls one operator with the attributes of a row."""

    def __init__(self, row: Row) -> None:
        super().__init__()
        prefix = next(p for p in PREFIXES if row.op.startswith(p))
        self.name_of_op, self.attrs = row.op.removeprefix(prefix), row.attrs

    def hybrid_forward(self, F: Any, *inputs: Any) -> Any:
        """Run the operator in the namespace of the inputs."""
        return getattr(F.np._internal, self.name_of_op)(*inputs, **self.attrs)


def _as_list(out: Any) -> list:
    return list(out) if isinstance(out, list | tuple) else [out]


def _numpy_arrays(row: Row) -> list:
    return [mx.np.array(a, dtype=a.dtype) for a in row.arrays()]


@pytest.fixture(autouse=True)
def numpy_semantics() -> Any:
    """Turn NumPy's shapes and arrays on for one test."""
    mx.npx.set_np()
    yield
    mx.npx.reset_np()


def _equal(given: list, wanted: list) -> None:
    for g, w in zip(given, wanted, strict=True):
        assert type(g) is mx.np.ndarray
        assert g.dtype == w.dtype
        assert_equal_up_to_rounding(g.asnumpy(), w.asnumpy())


@for_rows(is_numpy_row, at_most=4)
def test_np_arrays_give_equal_np_results(family: str, rows: list[Row]) -> None:
    """Results are `mx.np` arrays with the same values and dtypes."""

    def check(row: Row) -> None:
        _equal(_as_list(Calling(row)(*_numpy_arrays(row))), call(row, arrays_of(row)))

    check_all(rows, check)


@for_rows(is_numpy_row, at_most=2)
def test_hybridized_equals_eager(family: str, rows: list[Row]) -> None:
    """Including gradients."""

    def check(row: Row) -> None:
        block = Calling(row)
        eager = _as_list(block(*_numpy_arrays(row)))
        grads = _gradients(block, row)
        block.hybridize()
        _equal(_as_list(block(*_numpy_arrays(row))), eager)
        for given, wanted in zip(_gradients(block, row), grads, strict=True):
            onp.testing.assert_allclose(given, wanted, rtol=1e-5, atol=1e-6)

    check_all(rows, check)


def _gradients(block: HybridBlock, row: Row) -> list[onp.ndarray]:
    """Return the gradients of floating-point inputs, for head gradients of ones."""
    arrays = _numpy_arrays(row)
    floating = [a for a in arrays if onp.dtype(a.dtype).kind == "f"]
    if not row.grad or registry.get(row.op).value_dependent:
        return []
    for a in floating:
        a.attach_grad()
    with mx.autograd.record():
        outs = _as_list(block(*arrays))
    mx.autograd.backward(outs)
    return [a.grad.asnumpy() for a in floating]
