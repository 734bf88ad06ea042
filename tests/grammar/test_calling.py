"""Calling operators: `out=`, attributes as strings, `grad_req`."""

from __future__ import annotations

from typing import Any

import numpy as np

import mxnet as mx
from mxnet.ops import registry
from mxnet.ops.attributes import to_string
from tests.closeness import assert_equal_up_to_rounding
from tests.grammar.calling import arrays_of, call, differentiable, run_backward
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row


def _deterministic(row: Row) -> bool:
    return registry.get(row.op).context_parameter is None


@for_rows(_deterministic, at_most=6)
def test_out_argument_equals_plain_call(family: str, rows: list[Row]) -> None:
    def check(row: Row) -> None:
        wanted = call(row, arrays_of(row))
        given = [mx.nd.array(np.full(w.shape, 9), dtype=w.dtype) for w in wanted]
        call(row, arrays_of(row), out=given if len(given) > 1 else given[0])
        for g, w in zip(given, wanted, strict=True):
            assert_equal_up_to_rounding(g.asnumpy(), w.asnumpy())

    check_all(rows, check)


def _own_attributes(row: Row) -> dict[str, Any]:
    op = registry.get(row.op)
    return {k: v for k, v in row.attrs.items() if k in op.attributes}


@for_rows(_own_attributes)
def test_attributes_as_text_equal_typed_attributes(family: str, rows: list[Row]) -> None:
    """Model files store attributes as strings."""

    def check(row: Row) -> None:
        op, own = registry.get(row.op), _own_attributes(row)
        assert op.parse(own) == op.parse({k: to_string(v) for k, v in own.items()})

    check_all(rows, check)


@for_rows(lambda row: row.has_gradients and _deterministic(row), at_most=2)
def test_grad_req_add_accumulates(family: str, rows: list[Row]) -> None:
    """A second backward with 'add' doubles the gradient of 'write'; 'null' writes nothing."""

    def check(row: Row) -> None:
        arrays = arrays_of(row)
        wanted = differentiable(arrays)
        run_backward(row, arrays, wanted)
        once = [arrays[i].grad.asnumpy() for i in wanted]
        for req, factor in (("add", 1), ("null", 0)):
            fresh = arrays_of(row)
            run_backward(row, fresh, wanted, req)
            for i, grad in zip(wanted, once, strict=True):
                np.testing.assert_allclose(
                    fresh[i].grad.asnumpy(), grad * factor, rtol=1e-5, atol=1e-6
                )

    check_all(rows, check)
