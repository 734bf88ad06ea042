"""Symbols compute the same as eager functions, also after a JSON roundtrip."""

from __future__ import annotations

import numpy as np

import mxnet as mx
from mxnet.ops import registry
from tests.grammar.calling import (
    arrays_of,
    call,
    compose,
    differentiable,
    run_backward,
)
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row


def _symbol(row: Row, count: int) -> mx.sym.Symbol:
    inputs = [mx.sym.Variable(f"in{i}") for i in range(count)]
    return compose(row, inputs)


def _bound(symbol: mx.sym.Symbol, row: Row, reqs: dict[str, str]) -> mx.executor.Executor:
    arrays = {f"in{i}": a for i, a in enumerate(arrays_of(row))}
    args = {n: arrays[n] for n in symbol.list_arguments()}
    grads = {n: mx.nd.zeros(args[n].shape, dtype=args[n].dtype) for n in reqs if n in args}
    aux = {n: arrays[n] for n in symbol.list_auxiliary_states()}
    return symbol.bind(mx.cpu(), args, grads, reqs, aux)


def _without_context(row: Row) -> bool:
    return registry.get(row.op).context_parameter is None


@for_rows(_without_context, at_most=4)
def test_symbol_equals_eager(family: str, rows: list[Row]) -> None:
    """Forward and backward of a bound symbol, reloaded from its JSON."""

    def check(row: Row) -> None:
        arrays = arrays_of(row)
        symbol = mx.sym.load_json(_symbol(row, len(arrays)).tojson())
        wanted = differentiable(arrays) if row.grad else []
        executor = _bound(symbol, row, {f"in{i}": "write" for i in wanted})
        outs = executor.forward(is_train=row.train or bool(wanted))
        if not row.train and wanted:
            outs = executor.forward(is_train=False)
        eager = run_backward(row, arrays, wanted) if row.train else call(row, arrays)
        for o, e in zip(outs, eager, strict=True):
            np.testing.assert_allclose(o.asnumpy(), e.asnumpy(), rtol=1e-5, atol=1e-6)

    check_all(rows, check)


@for_rows(lambda row: row.has_gradients and _without_context(row), at_most=2)
def test_symbol_gradients_equal_eager(family: str, rows: list[Row]) -> None:
    """Gradients of a bound symbol in training mode equal those of autograd."""

    def check(row: Row) -> None:
        arrays = arrays_of(row)
        wanted = differentiable(arrays)
        executor = _bound(_symbol(row, len(arrays)), row, {f"in{i}": "write" for i in wanted})
        outs = executor.forward(is_train=True)
        heads = [
            mx.nd.array(row.head_gradient(i, o.shape), dtype=o.dtype) for i, o in enumerate(outs)
        ]
        executor.backward(heads)
        trained = Row(row.op, row.inputs, row.attrs, train=True)
        trained.key = row.key
        run_backward(trained, arrays, wanted)
        for i in wanted:
            grad = executor.grad_dict.get(f"in{i}")
            if grad is not None:
                np.testing.assert_allclose(
                    grad.asnumpy(), arrays[i].grad.asnumpy(), rtol=1e-5, atol=1e-6
                )

    check_all(rows, check)
