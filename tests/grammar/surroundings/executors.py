"""Executors: watched, mirrored, on two devices, reshaped, run twice, with shared arguments."""

from __future__ import annotations

import contextlib
import warnings

import pytest

import mxnet as mx
from tests.grammar.surroundings import surrounding
from tests.grammar.surroundings.calls import SEED, Call, Results, bind, step


@surrounding(applies=lambda call: call.differentiated)
def mirrored(call: Call) -> Results:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MXNET_BACKWARD_DO_MIRROR", "1")
        return step(call, bind(call, call.symbol()))


@surrounding(applies=lambda call: call.count > 0)
def in_a_group_of_another_device(call: Call) -> Results:
    with mx.AttrScope(ctx_group="other"):
        symbol = call.symbol(after=lambda F, y: F.identity(y))
    return step(call, bind(call, symbol, group2ctx={"other": mx.cpu(1)}))


@surrounding(applies=lambda call: call.differentiated)
def second_backward_of_an_executor(call: Call) -> Results:
    executor = bind(call, call.symbol())
    results = step(call, executor)
    for gradient in executor.grad_arrays:
        if gradient is not None:
            gradient[()] = 0  # gradients of labels are not written
    executor.backward(call.head_gradients(executor.outputs))
    again = {i: executor.grad_dict[call.names[i]].asnumpy() for i in results.gradients}
    return Results(results.outputs, again, results.states)


@surrounding
def after_a_forward_in_prediction(call: Call) -> Results:
    executor = bind(call, call.symbol())
    executor.forward(is_train=False)
    return step(call, executor)


@surrounding(applies=lambda call: call.differentiated)
def executors_with_shared_arguments(call: Call) -> Results:
    """Backward of one executor runs after forward and backward of the other."""
    first = bind(call, call.symbol())
    gradients = {n: g.copy() for n, g in first.grad_dict.items() if g is not None}
    reqs = {n: "write" if n in gradients else "null" for n in first.arg_dict}
    ctx, states = mx.current_context(), bind(call, call.symbol()).aux_dict
    second = call.symbol().bind(ctx, first.arg_dict, gradients, reqs, states)
    mx.random.seed(SEED)
    outputs = first.forward(is_train=True)
    results = step(call, second)
    first.backward(call.head_gradients(outputs))
    found = {call.names.index(n): first.grad_dict[n].asnumpy() for n in gradients}
    Results(results.outputs, found, results.states).compare(results, 0)
    return results


def _larger_shapes(call: Call) -> dict[str, tuple[int, ...]] | None:
    """Return input shapes with one more row in the batch, if the operator accepts them."""
    shapes = {n: a.shape for n, a in zip(call.names, call.row.arrays(), strict=True)}
    symbol = call.symbol()
    first = call.names[:1]
    for names in (first, call.names):
        if not all(shapes[n] for n in names):
            continue
        larger = {n: (shapes[n][0] + 1, *shapes[n][1:]) for n in names}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # not sufficient to infer the others
                inferred = symbol.infer_shape(**larger)[0]
        except mx.MXNetError:
            continue
        if inferred is not None:
            return dict(zip(symbol.list_arguments(), inferred, strict=True))
    return None


@surrounding(applies=lambda call: call.count > 0 and _larger_shapes(call) is not None)
def reshaped_and_back(call: Call) -> Results:
    executor = bind(call, call.symbol())
    original = {n: a.shape for n, a in executor.arg_dict.items()}
    larger = executor.reshape(partial_shaping=True, allow_up_sizing=True, **_larger_shapes(call))
    with contextlib.suppress(mx.MXNetError):  # larger inputs may be incompatible
        step(call, larger)
    back = larger.reshape(partial_shaping=True, allow_up_sizing=True, **original)
    for name, array in zip(call.names, call.arrays(), strict=True):
        target = back.arg_dict.get(name, back.aux_dict.get(name))
        if target is not None:
            target[()] = array
    return step(call, back)
