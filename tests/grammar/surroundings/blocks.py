"""Hybridized blocks: static, recomputed, exported, shared, nested, in loops, as torch modules."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

import mxnet as mx
from tests.grammar.surroundings import in_every_form, surrounding
from tests.grammar.surroundings.calls import (
    HYBRIDIZED,
    SEED,
    Call,
    CallBlock,
    Form,
    Results,
    hybridized,
    run_block,
)
from tests.grammar.surroundings.inputs import check_equal, in_threads


@surrounding(applies=HYBRIDIZED.applies)
def static_block(call: Call) -> Results:
    return hybridized(call, static_alloc=True, static_shape=True)


@surrounding(applies=lambda call: call.differentiated)
def recomputed_block(call: Call) -> Results:
    return hybridized(call, recompute=True)


@surrounding(applies=lambda call: call.differentiated)
def third_step_of_a_block(call: Call) -> Results:
    block = CallBlock(call)
    for _ in range(3):
        results = hybridized(call, block=block)
    return results


@surrounding(applies=HYBRIDIZED.applies)
def exported_and_imported_block(call: Call) -> Results:
    block = CallBlock(call)
    block.hybridize()
    with tempfile.TemporaryDirectory() as folder, mx.autograd.pause(train_mode=call.is_train):
        block(*call.arrays())
        block.export(str(Path(folder) / "net"))
        names = ["data"] if call.count == 1 else [f"data{i}" for i in range(call.count)]
        loaded = mx.gluon.SymbolBlock.imports(f"{folder}/net-symbol.json", names)
    return run_block(call, loaded)


@surrounding(applies=lambda call: call.count > 0 and not call.is_random)
def block_shared_by_four_threads(call: Call) -> Results:
    block = CallBlock(call)
    block.hybridize()
    return check_equal(in_threads([lambda: run_block(call, block)] * 4))


class Outer(mx.gluon.HybridBlock):
    """A block around another one."""

    def __init__(self, inner: mx.gluon.HybridBlock) -> None:
        super().__init__()
        self.inner = inner

    def hybrid_forward(self, F: Any, *inputs: Any) -> Any:
        return self.inner(*inputs)


@surrounding(applies=HYBRIDIZED.applies)
def block_inside_a_block(call: Call) -> Results:
    return hybridized(call, block=Outer(CallBlock(call)))


@surrounding(applies=HYBRIDIZED.applies)
def eager_block_around_a_hybridized_one(call: Call) -> Results:
    outer = Outer(CallBlock(call))
    outer.inner.hybridize()
    return run_block(call, outer)


class InForeach(Call):
    """A call as the body of a loop over one slice of each input."""

    def compute(self, F, inputs, before=None, after=None):
        def body(slices, states):
            return super(InForeach, self).compute(F, slices), states

        data = [F.expand_dims(x, axis=0) for x in inputs]
        return list(F.contrib.foreach(body, data, [])[0])


class InWhileLoop(Call):
    """A call as the body of a loop that runs once."""

    def compute(self, F, inputs, before=None, after=None):
        def body(i, *arrays):
            return super(InWhileLoop, self).compute(F, arrays), [i + 1, *arrays]

        start = F.zeros((1,))
        loop = F.contrib.while_loop
        outputs, _ = loop(lambda i, *_: i < 1, body, [start, *inputs], max_iterations=1)
        return list(outputs)


class InCond(Call):
    """A call in both branches of a condition."""

    def compute(self, F, inputs, before=None, after=None):
        def branch():
            return super(InCond, self).compute(F, inputs)

        outputs = F.contrib.cond(F.ones((1,)), branch, branch)
        return list(outputs) if isinstance(outputs, list | tuple) else [outputs]


def _without_axis(results: Results) -> Results:
    """Return the results of a loop's only step."""
    outputs = [np.asarray(o[0], o.dtype) for o in results.outputs]
    return Results(outputs, results.gradients, results.states)


def _may_loop(call: Call) -> bool:
    # Slices of a vector have an axis in graphs and none in eager loops, in MXNet as well.
    return call.count > 0 and not call.written and all(a.ndim for a in call.row.arrays())


@in_every_form(applies=_may_loop)
def in_foreach(form: Form, call: Call) -> Results:
    return _without_axis(form(call.like(InForeach)))


@in_every_form(applies=_may_loop)
def in_while_loop(form: Form, call: Call) -> Results:
    return _without_axis(form(call.like(InWhileLoop)))


@in_every_form(applies=_may_loop)
def in_cond(form: Form, call: Call) -> Results:
    return form(call.like(InCond))


@surrounding(applies=lambda call: call.differentiated)
def as_torch_module(call: Call) -> Results:
    module = CallBlock(call).as_torch().train(call.is_train)
    tensors = [torch.from_numpy(a) for a in call.row.arrays()]
    for i in call.differentiated:
        tensors[i].requires_grad_()
    mx.random.seed(SEED)
    out = module(*tensors)
    outputs = list(out) if isinstance(out, list | tuple) else [out]
    heads = [torch.from_numpy(call.row.head_gradient(i, o.shape)) for i, o in enumerate(outputs)]
    pairs = [(o, h.to(o.dtype)) for o, h in zip(outputs, heads, strict=True) if o.requires_grad]
    if pairs:
        torch.autograd.backward([o for o, _ in pairs], [h for _, h in pairs])
    gradients = {
        i: tensors[i].new_zeros(tensors[i].shape) if tensors[i].grad is None else tensors[i].grad
        for i in call.differentiated
    }
    return Results(
        [o.detach().numpy() for o in outputs],
        {i: g.detach().numpy() for i, g in gradients.items()},
        {i: tensors[i].numpy() for i in call.written},
    )
