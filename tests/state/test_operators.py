"""Memory sharing of every operator: outputs do not share memory.

If a program overwrites results, gradients, head gradients or inputs after a call, the next call
gives the same results as the first.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import mxnet as mx
from mxnet.ndarray import NDArray
from mxnet.ops import registry
from mxnet.runtime.recording import graph_tensor
from tests.grammar.calling import arrays_of, differentiable, eager_function
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row
from tests.grammar.test_symbols import _bound, _symbol
from tests.state.memory import (
    address,
    can_be_viewed,
    check_apart,
    check_same,
    check_unrelated,
    fill,
    named,
    spoil,
    storage,
    values,
)

FLAGS = ({}, {"static_alloc": True, "static_shape": True})
MODES = (
    mx.autograd.train_mode,
    lambda: mx.autograd.record(train_mode=False),
    mx.autograd.record,
    mx.autograd.predict_mode,  # the call is cached now
)


def call(row: Row, arrays: list[NDArray]) -> list[NDArray]:
    """Run the operator eagerly; a second call of the same form is cached."""
    out = eager_function(row.op)(*arrays, **row.attrs)
    return out if isinstance(out, list) else [out]


def _seed(row: Row) -> None:
    """Reset the seed, so that random operators draw the same numbers again."""
    if registry.get(row.op).context_parameter is not None:
        mx.random.seed(7)


def _heads(row: Row, outs: list[NDArray]) -> list[NDArray]:
    return [mx.nd.array(row.head_gradient(i, o.shape), dtype=o.dtype) for i, o in enumerate(outs)]


def is_first(row: Row, rows: list[Row]) -> bool:
    """Return whether a row is the first of its operator."""
    return row is next(r for r in rows if r.op == row.op)


@for_rows(lambda row: True, at_most=3)
def test_outputs_do_not_share_memory(family: str, rows: list[Row]) -> None:
    """With an input or with another output, in any mode."""

    def check(row: Row) -> None:
        for mode in MODES if is_first(row, rows) else MODES[2:4]:
            arrays = arrays_of(row)
            for i in differentiable(arrays):
                arrays[i].attach_grad()
            with mode():
                outs = call(row, arrays)
            check_apart(named(inputs=arrays, outputs=outs))

    check_all(rows, check)


@for_rows(lambda row: True, at_most=3)
def test_slices_of_outputs_are_views(family: str, rows: list[Row]) -> None:
    """Slices and reshapes of outputs share memory, as in MXNet."""

    def check(row: Row) -> None:
        outs = call(row, arrays_of(row))
        arrays = arrays_of(row)
        for i in differentiable(arrays):
            arrays[i].attach_grad()
        with mx.autograd.record():
            outs += call(row, arrays)
        if _can_be_bound(row) and is_first(row, rows):
            outs += _cached(row, {})(*arrays_of(row))
            outs += _bound(_symbol(row, len(row.inputs)), row, {}).forward()
        assert all(can_be_viewed(o) for o in outs if o.shape and o.size)

    check_all(rows, check)


class Step:
    """A recorded call of an operator with backward, and all its arrays."""

    def __init__(self, row: Row, arrays: list[NDArray], run: Any, train: bool) -> None:
        _seed(row)
        for array in arrays:
            array._fresh_grad = False
        with mx.autograd.record(train_mode=train):
            self.outs = run(*arrays)
        heads = _heads(row, self.outs)
        tracked = [i for i, o in enumerate(self.outs) if graph_tensor(o) is not None]
        self.heads = [heads[i] for i in tracked]
        self.results = values(self.outs)
        if tracked:
            mx.autograd.backward([self.outs[i] for i in tracked], self.heads)
        # Some inputs, such as labels, have no gradient: backward does not write it.
        self.results += values(a.grad if a._fresh_grad else None for a in arrays)


def _check_steps(row: Row, run: Any, train: bool) -> None:
    """Check steps on one set of arrays: every result must equal that of the first step."""
    arrays = arrays_of(row)
    numbers = values(arrays)
    for i in differentiable(arrays):
        arrays[i].attach_grad()
    gradients = [a.grad for a in arrays]
    views = {i: g.reshape((-1,)) for i, g in enumerate(gradients) if g is not None and g.shape}
    places = {i: address(gradients[i]) for i in views}
    first = Step(row, arrays, run, train)
    check_apart(named(inputs=arrays, outputs=first.outs, gradients=gradients, heads=first.heads))
    last = first
    for turn in ("the second", "the third"):
        _write_over(arrays, numbers, last, gradients)
        last = Step(row, arrays, run, train)
        check_same(last.results, first.results, turn)
        for i, view in views.items():
            assert arrays[i].grad is gradients[i]
            assert address(gradients[i]) == places[i], "the gradient moved"
            assert np.array_equal(view.asnumpy(), gradients[i].asnumpy().reshape(-1), True)
    check_unrelated(*(a.shape for a in (*arrays, *first.outs)))


def _write_over(
    arrays: list[NDArray], numbers: list, step: Step, gradients: list[NDArray | None]
) -> None:
    """Overwrite all arrays of a step, and check that nothing else changes."""
    for array, value in zip(arrays, numbers, strict=True):  # a call may write into its inputs
        fill(array, mx.nd.array(value, dtype=array.dtype))
    outs, grads = values(step.outs), values(gradients)
    spoil(step.heads)
    check_same(values(gradients), grads, "head gradients reach gradients")
    spoil(gradients)
    check_same(values(step.outs), outs, "gradients reach outputs")
    spoil(arrays)
    check_same(values(step.outs), outs, "inputs reach outputs")
    for array, value in zip(arrays, numbers, strict=True):
        fill(array, mx.nd.array(value, dtype=array.dtype))
    spoil(step.outs)
    check_same(values(arrays), numbers, "outputs reach inputs")


@for_rows(lambda row: row.has_gradients, at_most=1)
def test_recorded_calls_do_not_affect_each_other(family: str, rows: list[Row]) -> None:
    """Eager calls with backward."""
    check_all(rows, lambda row: _check_steps(row, lambda *a: call(row, list(a)), row.train))


def _can_be_bound(row: Row) -> bool:
    op = registry.get(row.op)
    return bool(row.inputs) and not op.value_dependent


def _cached(row: Row, flags: dict[str, bool]) -> Any:
    symbol = _symbol(row, len(row.inputs))
    cached = mx.nd.CachedOp(symbol, [(k, str(v)) for k, v in flags.items()])
    order = [int(name[2:]) for name in symbol.list_inputs()]

    def run(*arrays: NDArray) -> list[NDArray]:
        out = cached(*(arrays[i] for i in order))
        return list(out) if isinstance(out, list | tuple) else [out]

    return run


@for_rows(lambda row: row.has_gradients and _can_be_bound(row), at_most=1)
def test_hybridized_calls_do_not_affect_each_other(family: str, rows: list[Row]) -> None:
    """Hybridized graphs of one operator, with backward."""
    for flags in FLAGS:
        check_all(rows, lambda row, f=flags: _check_steps(row, _cached(row, f), row.train))


@for_rows(_can_be_bound, at_most=1)
def test_hybridized_predictions_do_not_affect_each_other(family: str, rows: list[Row]) -> None:
    """Hybridized graphs of one operator, without recording."""

    def check(row: Row) -> None:
        for flags in FLAGS:
            run = _cached(row, flags)
            found = []
            for _ in range(3):
                arrays = arrays_of(row)
                _seed(row)
                outs = run(*arrays)
                check_apart(named(inputs=arrays, outputs=outs))
                found.append(values(outs))
                spoil([*outs, *arrays])
                check_same(found[-1], found[0])

    check_all(rows, check)


@for_rows(_can_be_bound, at_most=1)
def test_executors_write_outputs_and_gradients_in_place(family: str, rows: list[Row]) -> None:
    """Outputs and gradients keep their memory and do not share it."""
    check_all(rows, lambda row: _check_executor(row, "write"))
    with_gradients = [r for r in rows if r.has_gradients]
    if with_gradients:
        check_all(with_gradients, lambda row: _check_executor(row, "add"))


def _check_executor(row: Row, req: str) -> None:
    arrays = arrays_of(row)
    wanted = differentiable(arrays) if row.grad else []
    symbol = _symbol(row, len(arrays))
    e = _bound(symbol, row, {f"in{i}": req for i in wanted})
    bound = [*e.arg_arrays, *e.aux_arrays]
    names = [*symbol.list_arguments(), *symbol.list_auxiliary_states()]
    numbers = [arrays[int(name[2:])] for name in names]
    gradients = [g for g in e.grad_arrays if g is not None]
    views = [(g, g.reshape((-1,))) for g in gradients if can_be_viewed(g)]
    first, heads = None, []
    for turn in range(4):
        for array, value in zip(bound, numbers, strict=True):
            fill(array, value)
        for gradient in gradients:
            fill(gradient, 0)
        spoil(heads)
        _seed(row)
        e.forward(is_train=bool(gradients) or row.train)
        found = values(e.outputs)
        heads = _heads(row, e.outputs)
        if gradients:
            e.backward(heads)
        found += values(gradients)
        if first is None:
            first, outputs = found, list(e.outputs)
            views += [(o, o.reshape((-1,))) for o in outputs if can_be_viewed(o)]
            places = [address(view) for _, view in views]
            check_apart(named(bound=bound, outputs=outputs, gradients=gradients, heads=heads))
        check_same(found, first, f"turn {turn}")
        check_same(values(outputs), values(e.outputs), "a kept output")
        assert [g for g in e.grad_arrays if g is not None] == gradients
        assert [address(array) for array, _ in views] == places, "an array moved"
        check_same(values(v for _, v in views), [a.asnumpy().reshape(-1) for a, _ in views], "view")
        spoil([(), outputs, bound, [*outputs, *bound]][turn])
    check_unrelated(*(o.shape for o in outputs))


def test_shared_memory_is_detected_for_views() -> None:
    """The checks above can fail: they detect views."""
    x = mx.nd.ones((4, 2))
    for view in (x[1:3], x.reshape((2, 4)), x[0]):
        assert storage(view) == storage(x)
        with pytest.raises(AssertionError, match="share memory"):
            check_apart({"x": x, "view": view})
    check_apart({"x": x, "copy": x.copy(), "column": x[:, 1]})
    with contextlib.suppress(AssertionError):
        check_all([], lambda row: None)
        raise ValueError("a check without rows passed")
