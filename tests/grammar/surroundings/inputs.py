"""Inputs on memory that something else owns, and gradients that are asked for in other ways."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

import mxnet as mx
from mxnet.ndarray import NDArray
from tests.grammar.surroundings import in_every_form, surrounding
from tests.grammar.surroundings.calls import (
    Call,
    Form,
    Results,
    eager,
    is_recorded,
    recording,
)


@in_every_form
def plain(form: Form, call: Call) -> Results:
    return form(call)


def _with_inputs(call: Call, place: Callable[[np.ndarray], NDArray]) -> Results:
    return eager(call, call.attach([place(a) for a in call.row.arrays()]))


def _has_axes(call: Call) -> bool:
    return call.count > 0 and all(a.ndim and a.size for a in call.row.arrays())


@surrounding(applies=_has_axes)
def inputs_in_the_middle_of_an_array(call: Call) -> Results:
    def place(values: np.ndarray) -> NDArray:
        around = mx.nd.zeros((len(values) + 2, *values.shape[1:]), dtype=values.dtype)
        around[1:-1] = mx.nd.array(values, dtype=values.dtype)
        return around[1:-1]

    return _with_inputs(call, place)


@surrounding(applies=_has_axes)
def inputs_that_are_rows(call: Call) -> Results:
    def place(values: np.ndarray) -> NDArray:
        batch = np.stack([values * 0, values, values * 0])
        return mx.nd.array(batch, dtype=values.dtype)[1]

    return _with_inputs(call, place)


@surrounding(applies=_has_axes)
def reshaped_inputs(call: Call) -> Results:
    return _with_inputs(call, lambda v: mx.nd.array(v.reshape(-1), dtype=v.dtype).reshape(v.shape))


@surrounding(applies=lambda call: call.count > 0)
def inputs_from_numpy_without_a_copy(call: Call) -> Results:
    return _with_inputs(call, mx.nd.from_numpy)


@surrounding(applies=lambda call: all(a.dtype != bool for a in call.row.arrays()) and call.count)
def inputs_from_dlpack(call: Call) -> Results:
    return _with_inputs(call, mx.nd.from_dlpack)


@surrounding(applies=lambda call: call.differentiated)
def gradients_attached_twice(call: Call) -> Results:
    return eager(call, call.attach(call.attach(call.arrays())))


@surrounding(applies=lambda call: call.differentiated)
def gradients_added_over_two_backwards(call: Call) -> Results:
    arrays = call.attach(call.arrays(), "add")
    for _ in range(2):
        outputs = _record(call, arrays)
        call.backward(outputs)
    results = call.results(outputs, arrays)
    results.gradients = {i: g / np.array(2, g.dtype) for i, g in results.gradients.items()}
    return results


@surrounding(applies=lambda call: call.differentiated)
def second_backward_of_a_retained_graph(call: Call) -> Results:
    arrays = call.attach(call.arrays())
    outputs = _record(call, arrays)
    call.backward(outputs, retain_graph=True)
    for i in call.differentiated:
        arrays[i].grad[()] = 0  # some gradients are left alone: those of labels and indices
    call.backward(outputs)
    return call.results(outputs, arrays)


@surrounding(applies=lambda call: call.differentiated)
def autograd_grad(call: Call) -> Results:
    arrays = call.attach(call.arrays())
    outputs = _record(call, arrays)
    heads = [i for i, o in enumerate(outputs) if is_recorded(o)]
    gradients = call.head_gradients(outputs)
    variables = [arrays[i] for i in call.differentiated]
    results = call.results(outputs, arrays)
    if heads:
        found = mx.autograd.grad(
            [outputs[i] for i in heads], variables, [gradients[i] for i in heads]
        )
        results.gradients = {
            i: g.asnumpy() for i, g in zip(call.differentiated, found, strict=True)
        }
    return results


@surrounding(applies=lambda call: call.differentiated)
def backward_in_another_thread(call: Call) -> Results:
    arrays = call.attach(call.arrays())
    outputs = _record(call, arrays)
    in_threads([lambda: call.backward(outputs)])
    return call.results(outputs, arrays)


@surrounding(applies=lambda call: call.differentiated and not call.is_random)
def called_in_four_threads(call: Call) -> Results:
    return check_equal(in_threads([lambda: eager(call)] * 4))


def _record(call: Call, arrays: list[NDArray]) -> list[NDArray]:
    """Run a call with new auxiliary states, so that a second run equals the first."""
    fresh = call.arrays()
    for i in call.written:
        arrays[i] = fresh[i]
    with recording(call):
        return call.compute(mx.nd, arrays)


THREAD_SECONDS = 60


def in_threads(functions: Sequence[Callable]) -> list:
    """Return what functions return that run in threads of their own at the same time."""
    results: list = [None] * len(functions)
    errors: list[BaseException] = []
    ctx, is_np_shape = mx.current_context(), mx.util.is_np_shape()  # facts of a thread

    def run(number: int, function: Callable) -> None:
        try:
            with ctx, mx.util.np_shape(is_np_shape):
                results[number] = function()
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=run, args=(n, f), daemon=True) for n, f in enumerate(functions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(THREAD_SECONDS)
        assert not thread.is_alive(), "a thread does not end"
    if errors:
        raise errors[0]
    return results


def check_equal(results: Sequence[Results]) -> Results:
    """Return the first of several results that must be equal."""
    for other in results[1:]:
        other.compare(results[0], 0)
    return results[0]
