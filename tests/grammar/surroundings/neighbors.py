"""Custom operators, functions and torch modules before and after an operator."""

from __future__ import annotations

from typing import Any

import torch

import mxnet as mx
from tests.grammar.surroundings import in_every_form, surrounding
from tests.grammar.surroundings.calls import Call, Form, Results, bind, eager, step


class PassOn(mx.operator.CustomOp):
    """Copies its input, and the gradient of its output."""

    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], in_data[0])

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        self.assign(in_grad[0], req[0], out_grad[0])


@mx.operator.register("pass_on")
class PassOnProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return PassOn()


def custom_operator(F: Any, x: Any) -> Any:
    return F.Custom(x, op_type="pass_on")


class PassOnFunction(mx.autograd.Function):
    def forward(self, x):
        return x.copy()

    def backward(self, dy):
        return dy


def function(F: Any, x: Any) -> Any:
    return PassOnFunction()(x)


TORCH_BLOCK = mx.gluon.nn.TorchBlock(torch.nn.Identity())


def torch_block(F: Any, x: Any) -> Any:
    return TORCH_BLOCK(x)


def _has_reals(call: Call) -> bool:
    return any(call.real_outputs)


@in_every_form(applies=lambda call: call.differentiated)
def custom_operator_before(form: Form, call: Call) -> Results:
    return form(call, before=custom_operator)


@in_every_form(applies=_has_reals)
def custom_operator_after(form: Form, call: Call) -> Results:
    return form(call, after=custom_operator)


@surrounding(applies=lambda call: call.differentiated)
def function_before(call: Call) -> Results:
    return eager(call, before=function)


@surrounding(applies=_has_reals)
def function_after(call: Call) -> Results:
    return eager(call, after=function)


@surrounding(applies=lambda call: call.differentiated)
def torch_block_before(call: Call) -> Results:
    return eager(call, before=torch_block)


@surrounding(applies=_has_reals)
def torch_block_after(call: Call) -> Results:
    return eager(call, after=torch_block)


class WithStoppedUses(Call):
    """A call with one more use of each real output, which no gradient passes."""

    def compute(self, F, inputs, before=None, after=None):
        outputs = super().compute(F, inputs, before, after)
        reals = [o for o, real in zip(outputs, self.real_outputs, strict=True) if real]
        return [*outputs, *map(F.BlockGrad, reals)]


@in_every_form(applies=_has_reals)
def stopped_use_of_the_output(form: Form, call: Call) -> Results:
    results = form(call.like(WithStoppedUses))
    count = len(call.real_outputs)
    return Results(results.outputs[:count], results.gradients, results.states)


@surrounding
def identity_after(call: Call) -> Results:
    executor = bind(call, call.symbol(after=lambda F, y: F.identity(y)))
    return step(call, executor)
