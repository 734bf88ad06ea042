"""Inputs in shared memory, and other ways to request gradients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import numpy as np

import mxnet as mx
from mxnet.ndarray import NDArray
from tests.grammar.surroundings import in_every_form, surrounding
from tests.grammar.surroundings.calls import RECORDED, Call, Form, Results, eager, is_recorded


@in_every_form
def plain(form: Form, call: Call) -> Results:
    return form(call)


# -- where inputs are ------------------------------------------------------------------------------


class Placed(Call):
    """A call whose inputs are transformed by `place`."""

    place: Callable[[np.ndarray], NDArray]

    def arrays(self) -> list[NDArray]:
        return [self.place(a) for a in self.row.arrays()]


def _run_placed(form: Form, call: Call, place: Callable[[np.ndarray], NDArray]) -> Results:
    placed = call.like(Placed)
    placed.place = place
    return form(placed)


def _has_axes(call: Call) -> bool:
    return call.count > 0 and all(a.ndim and a.size for a in call.row.arrays())


@in_every_form(applies=_has_axes)
def inputs_in_the_middle_of_an_array(form: Form, call: Call) -> Results:
    def place(values: np.ndarray) -> NDArray:
        around = mx.nd.zeros((len(values) + 2, *values.shape[1:]), dtype=values.dtype)
        around[1:-1] = mx.nd.array(values, dtype=values.dtype)
        return around[1:-1]

    return _run_placed(form, call, place)


@in_every_form(applies=_has_axes)
def inputs_that_are_rows(form: Form, call: Call) -> Results:
    def place(values: np.ndarray) -> NDArray:
        batch = np.stack([np.zeros_like(values), values, np.zeros_like(values)])
        return mx.nd.array(batch, dtype=values.dtype)[1]

    return _run_placed(form, call, place)


@in_every_form(applies=_has_axes)
def reshaped_inputs(form: Form, call: Call) -> Results:
    def place(values: np.ndarray) -> NDArray:
        return mx.nd.array(values.reshape(-1), dtype=values.dtype).reshape(values.shape)

    return _run_placed(form, call, place)


@in_every_form(applies=lambda call: call.count > 0)
def inputs_from_numpy_without_a_copy(form: Form, call: Call) -> Results:
    return _run_placed(form, call, mx.nd.from_numpy)


@in_every_form(applies=lambda call: all(a.dtype != bool for a in call.row.arrays()) and call.count)
def inputs_from_dlpack(form: Form, call: Call) -> Results:
    return _run_placed(form, call, mx.nd.from_dlpack)


# -- how gradients are asked for -------------------------------------------------------------------


def _has_gradients(call: Call) -> bool:
    return bool(call.differentiated)


class AttachedTwice(Call):
    def attach(self, arrays, grad_req="write"):
        return super().attach(super().attach(arrays, "add"), grad_req)


@in_every_form(applies=_has_gradients, forms=RECORDED)
def gradients_attached_twice(form: Form, call: Call) -> Results:
    return form(call.like(AttachedTwice))


class AddedTwice(Call):
    def attach(self, arrays, grad_req="write"):
        return super().attach(arrays, "add")

    def backward(self, outputs, **options):
        super().backward(outputs, retain_graph=True)
        super().backward(outputs)


@in_every_form(applies=_has_gradients, forms=RECORDED)
def gradients_added_over_two_backwards(form: Form, call: Call) -> Results:
    results = form(call.like(AddedTwice))
    results.gradients = {i: g / np.array(2, g.dtype) for i, g in results.gradients.items()}
    return results


class Retained(Call):
    """A call whose second backward must write the same gradients as the first."""

    def attach(self, arrays, grad_req="write"):
        self.attached = super().attach(arrays, grad_req)
        return self.attached

    def backward(self, outputs, **options):
        super().backward(outputs, retain_graph=True)
        for i in self.differentiated:  # zeros: gradients of labels are not written
            self.attached[i].grad[()] = 0
        super().backward(outputs)


@in_every_form(applies=_has_gradients, forms=RECORDED)
def second_backward_of_a_retained_graph(form: Form, call: Call) -> Results:
    return form(call.like(Retained))


class Differentiated(Retained):
    """A call whose gradients come from `autograd.grad`."""

    def backward(self, outputs, **options):
        pairs = zip(outputs, self.head_gradients(outputs), strict=True)
        heads = [(o, g) for o, g in pairs if is_recorded(o)]
        variables = [self.attached[i] for i in self.differentiated]
        if heads:
            outputs, gradients = zip(*heads, strict=True)
            found = mx.autograd.grad(list(outputs), variables, list(gradients))
            for variable, gradient in zip(variables, found, strict=True):
                variable.grad[()] = gradient


@in_every_form(applies=_has_gradients, forms=RECORDED)
def autograd_grad(form: Form, call: Call) -> Results:
    return form(call.like(Differentiated))


class BackwardInThread(Call):
    def backward(self, outputs, **options):
        in_threads([lambda: super(BackwardInThread, self).backward(outputs)])


@in_every_form(applies=_has_gradients, forms=RECORDED)
def backward_in_another_thread(form: Form, call: Call) -> Results:
    return form(call.like(BackwardInThread))


@surrounding(applies=lambda call: call.differentiated and not call.is_random)
def called_in_four_threads(call: Call) -> Results:
    return check_equal(in_threads([lambda: eager(call)] * 4))


THREAD_SECONDS = 60


def in_threads(functions: Sequence[Callable]) -> list:
    """Run functions concurrently, each in a thread, and return their results."""
    results: list = [None] * len(functions)
    errors: list[BaseException] = []
    ctx, is_np_shape = mx.current_context(), mx.util.is_np_shape()  # thread-local state

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
