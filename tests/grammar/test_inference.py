"""Inferred shapes and dtypes equal those of results."""

from __future__ import annotations

import mxnet as mx
from mxnet import dtypes
from mxnet.ops import registry
from mxnet.ops.declare import Op
from mxnet.ops.shapes import unify
from tests.grammar.calling import arrays_of, call
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row


def _attrs(op: Op, row: Row, given: int) -> dict:
    raw = dict(row.attrs)
    if op.count in op.attributes:
        raw.setdefault(op.count, given)
    return op.complete(op.parse(raw))


def _facts(row: Row) -> tuple:
    arrays = arrays_of(row)
    with mx.autograd.train_mode() if row.train else mx.autograd.predict_mode():
        outs = call(row, arrays)
    op = registry.get(row.op)
    return op, arrays, outs, _attrs(op, row, len(arrays))


def _has_fixed_shape(row: Row) -> bool:
    return not registry.get(row.op).value_dependent


@for_rows(_has_fixed_shape)
def test_inferred_shapes_equal_those_of_results(family: str, rows: list[Row]) -> None:
    """Infer output shapes from complete input shapes."""

    def check(row: Row) -> None:
        op, arrays, outs, attrs = _facts(row)
        ins, found = op.infer_shapes([a.shape for a in arrays], [None] * len(outs), attrs)
        assert ins == [a.shape for a in arrays]
        assert found == [o.shape for o in outs]

    check_all(rows, check)


@for_rows(_has_fixed_shape)
def test_inference_with_unknown_batch_size_is_compatible(family: str, rows: list[Row]) -> None:
    """With the first size of every input unknown, no inferred shape is wrong."""

    def check(row: Row) -> None:
        op, arrays, outs, attrs = _facts(row)
        partial = [(-1, *a.shape[1:]) if a.shape else a.shape for a in arrays]
        ins, found = op.infer_shapes(partial, [None] * len(outs), attrs)
        for inferred, array in zip(ins, arrays, strict=True):
            assert unify(inferred, array.shape) == array.shape
        for inferred, out in zip(found, outs, strict=True):
            assert unify(inferred, out.shape) == out.shape

    check_all(rows, check)


def test_inferred_dtypes_equal_those_of_results(family: str, rows: list[Row]) -> None:
    """Infer output dtypes from input dtypes."""

    def check(row: Row) -> None:
        op, arrays, outs, attrs = _facts(row)
        given = [dtypes.to_torch(a.dtype) for a in arrays]
        _, found = op.infer_types(given, [None] * len(outs), attrs)
        assert found == [dtypes.to_torch(o.dtype) for o in outs]

    check_all(rows, check)
