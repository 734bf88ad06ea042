"""`Call`: a sample row that can be run in several forms: eagerly, bound or hybridized."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

import mxnet as mx
from mxnet import autograd, dtypes
from mxnet.ndarray import NDArray
from mxnet.ops import registry
from mxnet.runtime.gradients import recorded_node
from tests.grammar.calling import arrays_of, compose, differentiable, eager_function
from tests.grammar.sampling import Row

SMALL_SUM = 0.1  # smaller results may be rounding errors of larger terms
MIXED_PRECISION = 1e5  # rounding limit above which float16 is assumed
SEED = 7  # of operators that draw random numbers
CallT = TypeVar("CallT", bound="Call")
Wrapper = Callable[[Any, Any], Any]  # (F, array or symbol) -> one of the same values


@dataclass
class Results:
    """Outputs, gradients by input, and the written inputs (auxiliary states) after a call."""

    outputs: list[np.ndarray]
    gradients: dict[int, np.ndarray] = field(default_factory=dict)
    states: dict[int, np.ndarray] = field(default_factory=dict)

    def compare(self, expected: Results, roundings: float) -> None:
        """Raise if values differ by more than some roundings of the largest one."""
        assert len(self.outputs) == len(expected.outputs)
        for i, (one, other) in enumerate(zip(self.outputs, expected.outputs, strict=True)):
            _compare(one, other, f"output {i}", roundings)
        for what in ("gradients", "states"):
            mine, theirs = getattr(self, what), getattr(expected, what)
            assert mine.keys() == theirs.keys(), f"{what} of {sorted(mine)}, not {sorted(theirs)}"
            for i, value in mine.items():
                _compare(value, theirs[i], f"{what} of input {i}", roundings)


def _compare(actual: np.ndarray, expected: np.ndarray, what: str, roundings: float) -> None:
    assert actual.shape == expected.shape, f"{what}: shape {actual.shape}, not {expected.shape}"
    if roundings >= MIXED_PRECISION and actual.dtype.kind == "f":
        actual = actual.astype(expected.dtype)
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype}, not {expected.dtype}"
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(actual, expected, err_msg=what)
        return
    rtol = roundings * float(np.finfo(expected.dtype).eps)
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    atol = rtol * np.abs(expected[np.isfinite(expected)]).max(initial=SMALL_SUM)
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=atol, err_msg=what)


class Call:
    """A sample row that forms and surroundings can run."""

    def __init__(self, row: Row) -> None:
        self.row, self.op = row, registry.get(row.op)
        self.count = len(row.arrays())
        self.names = [f"in{i}" for i in range(self.count)]
        self.is_train = row.train or row.has_gradients
        states = self.symbol().list_auxiliary_states()
        self.written = [i for i, name in enumerate(self.names) if name in states]
        floats = differentiable(self.arrays()) if row.has_gradients else []
        self.differentiated = [i for i in floats if i not in self.written]

    @property
    def is_random(self) -> bool:
        """Whether the operator draws random numbers."""
        return self.op.facts.random

    def arrays(self) -> list[NDArray]:
        """Return new arrays of the row's values."""
        return arrays_of(self.row)

    def like(self, kind: type[CallT]) -> CallT:
        """Return this call as an instance of a class that runs it differently."""
        other = object.__new__(kind)
        other.__dict__.update(self.__dict__, real_outputs=self.real_outputs)
        other.__dict__.pop("expected", None)
        return other

    def attach(self, arrays: list[NDArray], grad_req: str = "write") -> list[NDArray]:
        """Attach gradients to the inputs whose gradients are compared."""
        for i in self.differentiated:
            arrays[i].attach_grad(grad_req)
        return arrays

    def symbol(self, before: Wrapper | None = None, after: Wrapper | None = None) -> mx.sym.Symbol:
        """Return the call as a symbol whose arguments are `names`."""
        variables = [mx.sym.Variable(name) for name in self.names]
        outputs = self.compute(mx.sym, variables, before, after)
        return outputs[0] if len(outputs) == 1 else mx.sym.Group(outputs)

    def compute(
        self,
        F: Any,
        inputs: Sequence[Any],
        before: Wrapper | None = None,
        after: Wrapper | None = None,
    ) -> list[Any]:
        """Run the operator on arrays, or compose it with symbols, and return its outputs."""
        inputs = list(inputs)
        if before is not None:
            for i in self.differentiated:
                inputs[i] = before(F, inputs[i])
        if is_symbolic(F):
            symbol = compose(self.row, inputs)
            outputs = [symbol] if len(symbol.list_outputs()) == 1 else list(symbol)
        else:
            out = eager_function(self.row.op)(*inputs, **self.row.attrs)
            outputs = out if isinstance(out, list) else [out]
        if after is None:
            return outputs
        reals = self.real_outputs
        return [after(F, o) if real else o for o, real in zip(outputs, reals, strict=True)]

    @functools.cached_property
    def real_outputs(self) -> list[bool]:
        """Whether each output holds floating-point numbers."""
        return [o.dtype.kind == "f" for o in self.expected.outputs]

    def head_gradients(self, outputs: Sequence[NDArray]) -> list[NDArray]:
        """Return the gradients that backward starts from."""
        return [
            mx.nd.array(self.row.head_gradient(i, o.shape), dtype=o.dtype)
            for i, o in enumerate(outputs)
        ]

    def backward(self, outputs: Sequence[NDArray], **options: Any) -> None:
        """Run backward from the outputs that are in a graph."""
        pairs = zip(outputs, self.head_gradients(outputs), strict=True)
        heads = [(o, g) for o, g in pairs if is_recorded(o)]
        if heads:
            autograd.backward([o for o, _ in heads], [g for _, g in heads], **options)

    def results(self, outputs: Sequence[NDArray], arrays: Sequence[NDArray]) -> Results:
        """Return the results that a call has left in its outputs and arrays."""
        return Results(
            [to_numpy(o) for o in outputs],
            {i: arrays[i].grad.asnumpy() for i in self.differentiated},
            {i: arrays[i].asnumpy() for i in self.written},
        )

    @functools.cached_property
    def expected(self) -> Results:
        """The results of the plain eager call."""
        arrays = self.attach(self.arrays())
        with recording(self):
            outputs = self.compute(mx.nd, arrays)
        self.backward(outputs)
        return self.results(outputs, arrays)


def to_numpy(array: NDArray) -> np.ndarray:
    """Return the values of an array; NumPy has no bfloat16."""
    return (
        array.astype("float32") if dtypes.is_bfloat16(np.dtype(array.dtype)) else array
    ).asnumpy()


def is_recorded(array: NDArray) -> bool:
    """Return whether backward can start from an array."""
    return recorded_node(array) is not None


def is_symbolic(F: Any) -> bool:
    """Return whether `F` is the module of symbols."""
    return F is mx.sym


def recording(call: Call) -> Any:
    """Return the scope in which a call runs: seeded, and recorded if it has gradients."""
    mx.random.seed(SEED)
    if call.differentiated:
        return autograd.record(train_mode=call.is_train)
    return autograd.train_mode() if call.is_train else autograd.predict_mode()


@dataclass(frozen=True)
class Form:
    """One of MXNet's ways to run operators: ``form(call, before=..., after=...)``."""

    name: str
    run: Callable[..., Results]
    applies: Callable[[Call], bool]

    def __call__(self, call: Call, **options: Any) -> Results:
        """Run the call; `before` and `after` wrap its differentiated inputs and its outputs."""
        return self.run(call, **options)


def eager(call: Call, before: Wrapper | None = None, after: Wrapper | None = None) -> Results:
    """Run a call eagerly."""
    arrays = call.attach(call.arrays())
    with recording(call):
        outputs = call.compute(mx.nd, arrays, before, after)
    call.backward(outputs)
    return call.results(outputs, arrays)


def bind(call: Call, symbol: mx.sym.Symbol, **options: Any) -> mx.executor.Executor:
    """Bind a symbol of the call to new arrays."""
    arrays = dict(zip(call.names, call.arrays(), strict=True))
    args = {n: arrays[n] for n in symbol.list_arguments()}
    reqs = {call.names[i]: "write" for i in call.differentiated}
    reqs = {n: r for n, r in reqs.items() if n in args}
    grads = {n: mx.nd.zeros(args[n].shape, dtype=args[n].dtype) for n in reqs}
    aux = {n: arrays[n] for n in symbol.list_auxiliary_states()}
    return symbol.bind(mx.current_context(), args, grads, reqs, aux, **options)


def step(call: Call, executor: mx.executor.Executor) -> Results:
    """Run forward and backward of an executor."""
    mx.random.seed(SEED)
    outputs = executor.forward(is_train=call.is_train)
    if call.differentiated:
        executor.backward(call.head_gradients(outputs))
    gradients = {i: executor.grad_dict.get(call.names[i]) for i in call.differentiated}
    return Results(
        [to_numpy(o) for o in outputs],
        {i: g.asnumpy() for i, g in gradients.items() if g is not None},
        {i: executor.aux_dict[call.names[i]].asnumpy() for i in call.written},
    )


def bound(call: Call, before: Wrapper | None = None, after: Wrapper | None = None) -> Results:
    """Run a call as an executor."""
    return step(call, bind(call, call.symbol(before, after)))


class CallBlock(mx.gluon.HybridBlock):
    """A block that runs a call."""

    def __init__(
        self, call: Call, before: Wrapper | None = None, after: Wrapper | None = None
    ) -> None:
        super().__init__()
        self._call, self._before, self._after = call, before, after

    def hybrid_forward(self, F: Any, *inputs: Any) -> Any:
        outputs = self._call.compute(F, inputs, self._before, self._after)
        return outputs[0] if len(outputs) == 1 else outputs


def run_block(call: Call, block: Any) -> Results:
    """Run forward and backward of a block that takes the call's arrays."""
    arrays = call.attach(call.arrays())
    with recording(call):
        out = block(*arrays)
    outputs = list(out) if isinstance(out, list | tuple) else [out]
    call.backward(outputs)
    return call.results(outputs, arrays)


def hybridized(
    call: Call,
    before: Wrapper | None = None,
    after: Wrapper | None = None,
    block: mx.gluon.HybridBlock | None = None,
    **flags: Any,
) -> Results:
    """Run a call as a hybridized block."""
    block = CallBlock(call, before, after) if block is None else block
    block.hybridize(**flags)
    return run_block(call, block)


EAGER = Form("eager", eager, lambda call: True)
BOUND = Form("bound", bound, lambda call: True)
HYBRIDIZED = Form("hybridized", hybridized, lambda call: call.count > 0)
FORMS = (EAGER, BOUND, HYBRIDIZED)
RECORDED = (EAGER, HYBRIDIZED)  # with `autograd.backward`; executors have a backward of their own
