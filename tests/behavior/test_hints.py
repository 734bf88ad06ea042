"""Errors for common mistakes contain a hint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import mxnet as mx
from mxnet.gluon import nn


class Compute(nn.HybridBlock):
    """A custom layer that runs one function."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.function(F, x)


def hybridized(function: Callable) -> Any:
    net = Compute(function)
    net.hybridize()
    return net(mx.nd.ones((2, 3)))


class ForgottenChild(nn.HybridBlock):
    def __init__(self) -> None:
        self.dense = nn.Dense(3)


class ForgottenParameter(nn.Block):
    def __init__(self) -> None:
        self.scale = mx.gluon.Parameter("scale", shape=(1,))


class ForgottenCall(nn.Block):
    def __init__(self) -> None:
        self.factor = 3

    def forward(self, x: mx.nd.NDArray) -> mx.nd.NDArray:
        return x * self.factor


def regression() -> mx.sym.Symbol:
    dense = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=1, name="fc")
    return mx.sym.LinearRegressionOutput(dense, mx.sym.var("lin_label"), name="lin")


def batches(label: str) -> mx.io.NDArrayIter:
    return mx.io.NDArrayIter(mx.nd.ones((8, 3)), mx.nd.ones((8,)), 4, label_name=label)


def fit(names: list[str] | None, label: str = "lin_label", **options: Any) -> None:
    module = mx.mod.Module(regression(), label_names=names)
    module.fit(batches(label), num_epoch=1, **options)


NOT_A_BLOCK = r"call super\(\).__init__\(\*\*kwargs\) first in {0}.__init__"
TAKEN = r"neither data_names nor label_names are parameters: did you mean "

# The invalid call, its error type, and the hint.
MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "lr": (lambda: mx.optimizer.SGD(lr=0.1), TypeError, "Did you mean 'learning_rate'"),
    "lr by name": (
        lambda: mx.optimizer.create("adam", lr=0.1),
        TypeError,
        "Did you mean 'learning_rate'",
    ),
    "lr of a Module": (
        lambda: fit(["lin_label"], optimizer_params={"lr": 0.1}),
        TypeError,
        "Did you mean 'learning_rate'",
    ),
    "weight_decay": (
        lambda: mx.optimizer.create("sgd", weight_decay=0.1),
        TypeError,
        "Did you mean 'wd'",
    ),
    "misspelled": (
        lambda: mx.optimizer.create("sgd", momentun=0.1),
        TypeError,
        "Did you mean 'momentum'",
    ),
    "a rate in words": (
        lambda: mx.optimizer.create("sgd", learning_rate="x"),
        TypeError,
        "learning_rate='x' is not a number",
    ),
    "super forgotten before a child": (
        ForgottenChild,
        AttributeError,
        NOT_A_BLOCK.format("ForgottenChild"),
    ),
    "super forgotten before a parameter": (
        ForgottenParameter,
        AttributeError,
        NOT_A_BLOCK.format("ForgottenParameter"),
    ),
    "super forgotten before a call": (
        lambda: ForgottenCall()(mx.nd.ones(2)),
        AttributeError,
        NOT_A_BLOCK.format("ForgottenCall"),
    ),
    "super forgotten before initialize": (
        lambda: ForgottenCall().initialize(),
        AttributeError,
        NOT_A_BLOCK.format("ForgottenCall"),
    ),
    "shape of a symbol": (
        lambda: hybridized(lambda F, x: F.reshape(x, (x.shape[0], -1))),
        AttributeError,
        r"no attribute 'shape'. A symbol has no shape or values.*F.reshape\(x, \(0, -1\)\)",
    ),
    "context of a symbol": (
        lambda: hybridized(lambda F, x: F.ones((1,), ctx=x.context)),
        AttributeError,
        "The context is chosen at binding",
    ),
    "if on a symbol": (
        lambda: hybridized(lambda F, x: x if x > 1 else -x),
        NotImplementedError,
        r"Use F.where\(condition, x, y\) or F.contrib.cond",
    ),
    "mx.nd on a symbol": (
        lambda: hybridized(lambda F, x: mx.nd.relu(x)),
        TypeError,
        r"in hybrid_forward call F.name",
    ),
    "mx.sym on an array": (
        lambda: mx.sym.relu(mx.nd.ones(2)),
        TypeError,
        "For arrays use the functions of mx.nd",
    ),
    "another label of a Module": (
        lambda: fit(["softmax_label"]),
        ValueError,
        TAKEN + r"label_names=\['lin_label'\]",
    ),
    "no label of a Module": (lambda: fit(None), ValueError, TAKEN + r"label_names=\['lin_label'\]"),
    "another label of the iterator": (
        lambda: fit(["lin_label"], "softmax_label"),
        ValueError,
        "Create the iterator with label_name='lin_label'",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_error_message_contains_a_hint(mistake: str) -> None:
    program, kind, hint = MISTAKES[mistake]
    with pytest.raises(kind, match=hint):
        program()


def test_module_warns_of_a_label_treated_as_a_parameter() -> None:
    with pytest.warns(UserWarning, match=TAKEN + r"label_names=\['lin_label'\]"):
        mx.mod.Module(regression())


def test_symbols_lack_array_attributes() -> None:
    x = mx.sym.var("x")
    assert not hasattr(x, "shape")
    assert getattr(x, "ndim", None) is None


def test_mixed_precision_without_gpu() -> None:
    net = nn.Dense(2, in_units=3)
    net.initialize()
    net.hybridize()
    x = mx.nd.ones((1, 3))
    net(x)
    made = mx.contrib.amp.convert_hybrid_block(net, "bfloat16")
    wanted = mx.gpu(0) if mx.context.num_gpus() else mx.cpu()
    assert {p.list_ctx()[0] for p in made.collect_params().values()} == {wanted}
