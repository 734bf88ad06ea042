"""Errors inside blocks name the layer and use MXNet's terms, eager and hybridized."""

from __future__ import annotations

import copy
import pickle
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import mxnet as mx
from mxnet.gluon import nn

HERE = Path(__file__).name
TORCH_WORDS = ("mat1", "mat2", "tensor", "Double", "Half", "running_mean", "aten", "entry 0")


class Compute(nn.HybridBlock):
    """A custom layer that runs one function."""

    def __init__(self, function: Callable) -> None:
        super().__init__()
        self.function = function

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.function(F, x)


class Net(nn.HybridBlock):
    """A network whose second feature is the layer with the error."""

    def __init__(self, layer: nn.HybridBlock) -> None:
        super().__init__()
        with self.name_scope():
            self.features = nn.HybridSequential()
            self.features.add(Compute(lambda F, x: F.identity(x)))
            self.features.add(layer)

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return self.features(x)


# Invalid calls: the layer, shape and dtype of the data, and required parts of the message.
MISTAKES: dict[str, tuple[Callable[[], nn.HybridBlock], tuple[int, ...], str, list[str]]] = {
    "dense of another width": (
        lambda: nn.Dense(3, in_units=5),
        (2, 4),
        "float32",
        ["(Dense", "Shape inconsistent in FullyConnected", "[3, 5]", "[3, 4]"],
    ),
    "convolution of other channels": (
        lambda: nn.Conv2D(4, 3, in_channels=3),
        (2, 1, 8, 8),
        "float32",
        ["(Conv2D", "Shape inconsistent in Convolution", "[4, 3, 3, 3]", "[4, 1, 3, 3]"],
    ),
    "kernel larger than the picture": (
        lambda: nn.Conv2D(4, 9, in_channels=3),
        (2, 3, 8, 8),
        "float32",
        ["(Conv2D", "kernel size exceed input"],
    ),
    "convolution of a matrix": (
        lambda: nn.Conv2D(4, 3, in_channels=3),
        (2, 3),
        "float32",
        ["(Conv2D", "Input data should be 4D", "(2, 3)"],
    ),
    "deferred convolution of a matrix": (
        lambda: nn.Conv2D(4, 3),
        (2, 3),
        "float32",
        ["(Conv2D", "Deferred initialization failed", "Input data should be 4D", "(2, 3)"],
    ),
    "pooling window larger than the picture": (
        lambda: nn.MaxPool2D(9),
        (2, 3, 4, 4),
        "float32",
        ["(MaxPool2D", "kernel size (9) exceeds input (4 padded by 0)"],
    ),
    "batch norm of other channels": (
        lambda: nn.BatchNorm(in_channels=3),
        (2, 4, 3, 3),
        "float32",
        ["(BatchNorm", "moving_mean has 3 elements, but data has 4 channels"],
    ),
    "concat of other sizes": (
        lambda: Compute(lambda F, x: F.concat(x, F.ones((5, 7)), dim=1)),
        (2, 3),
        "float32",
        ["(Compute", "input 1 has size 5 where input 0 has size 2", "all axes but axis 1"],
    ),
    "stack of two shapes": (
        lambda: Compute(lambda F, x: F.stack(x, F.ones((5, 7)))),
        (2, 3),
        "float32",
        ["(Compute", "input 0 is [2, 3] and input 1 is [5, 7]"],
    ),
    "softmax over an absent axis": (
        lambda: Compute(lambda F, x: F.softmax(x, axis=3)),
        (2, 3),
        "float32",
        ["(Compute", "axis 3 is out of range for an array of 2 dimensions", "from -2 to 1"],
    ),
    "product of matrices that do not fit": (
        lambda: Compute(lambda F, x: F.dot(x, x)),
        (2, 3),
        "float32",
        ["(Compute", "dot shape error: [2, 3] X [2, 3]"],
    ),
    "data of another type": (
        lambda: nn.Dense(4, in_units=3),
        (2, 3),
        "float64",
        ["(Dense", "input 0 is float64, but input 1 is float32", "net.cast('float64')"],
    ),
    "whole numbers into a convolution": (
        lambda: nn.Conv2D(4, 3, in_channels=3),
        (2, 3, 8, 8),
        "int32",
        ["(Conv2D", "input 0 is int32, but input 1 is float32", "x.astype('float32')"],
    ),
    "sum of two types": (
        lambda: Compute(lambda F, x: F.broadcast_add(x, F.ones((2, 3), dtype="float64"))),
        (2, 3),
        "float32",
        ["(Compute", "expected float32, got float64"],
    ),
}


def failure(
    layer: nn.HybridBlock, data: mx.nd.NDArray, is_hybrid: bool, is_initialized: bool = True
) -> Exception:
    """Return the error that a network with an invalid layer raises."""
    net = Net(layer)
    if is_initialized:
        net.initialize()
    if is_hybrid:
        net.hybridize()
    with pytest.raises(Exception) as caught:
        net(data).asnumpy()
    return caught.value


@pytest.mark.parametrize("is_hybrid", [False, True], ids=["eager", "hybridized"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_layer_error_names_layer_shapes_and_dtypes(mistake: str, is_hybrid: bool) -> None:
    layer, shape, dtype, parts = MISTAKES[mistake]
    error = failure(layer(), mx.nd.ones(shape, dtype=dtype), is_hybrid)
    text = str(error)
    assert "In layer Net.features.1 (" in text
    assert [part for part in parts if part not in text] == []
    assert [word for word in TORCH_WORDS if word in text] == []
    assert isinstance(error, mx.MXNetError)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_module_error_names_the_same_layer(mistake: str) -> None:
    make, shape, dtype, _ = MISTAKES[mistake]
    layer = make()
    eager = failure(make(), mx.nd.ones(shape, dtype=dtype), False)
    with pytest.raises(type(eager)) as caught:
        module = mx.mod.Module(Net(layer)(mx.sym.var("data")), label_names=None)
        module.bind([mx.io.DataDesc("data", shape, dtype=dtype)], for_training=False)
        module.init_params()
        module.forward(mx.io.DataBatch([mx.nd.ones(shape, dtype=dtype)]), is_train=False)
        module.get_outputs()[0].asnumpy()
    text = str(caught.value)
    assert f"Error in operator {layer.name}_" in text
    assert f"{HERE}:" in text
    assert [word for word in TORCH_WORDS if word in text.replace("running_mean:", "")] == []


@pytest.mark.skipif(
    sys.version_info < (3, 11), reason="Python 3.10 restores tracebacks of errors raised again"
)
@pytest.mark.parametrize("is_hybrid", [False, True], ids=["eager", "hybridized"])
def test_traceback_shows_only_user_code(is_hybrid: bool) -> None:
    error = failure(nn.Dense(3, in_units=5), mx.nd.ones((2, 4)), is_hybrid)
    shown = "".join(traceback.format_exception(error)).splitlines()
    files = {line.split('"')[1] for line in shown if line.startswith("  File ")}
    assert {Path(file).name for file in files} == {HERE}
    assert len(shown) <= 15


def test_full_traceback_is_shown_with_MXNET_FULL_TRACEBACK(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MXNET_FULL_TRACEBACK", "1")
    error = failure(nn.Dense(3, in_units=5), mx.nd.ones((2, 4)), False)
    frames = traceback.extract_tb(error.__traceback__)
    assert any(Path(frame.filename).name == "block.py" for frame in frames)
    assert error.__cause__ is not None


@pytest.mark.parametrize("is_hybrid", [False, True], ids=["eager", "hybridized"])
def test_error_names_an_uninitialized_layer(is_hybrid: bool) -> None:
    layer = nn.Dense(3, in_units=4)
    text = str(failure(layer, mx.nd.ones((2, 4)), is_hybrid, is_initialized=False))
    assert f"Parameter '{layer.weight.name}' has not been initialized" in text
    assert f"In layer Net.features.1 (Dense '{layer.name}')." in text


def test_error_for_data_on_a_wrong_context_names_the_layer() -> None:
    text = str(failure(nn.Dense(3, in_units=4), mx.nd.ones((2, 4), ctx=mx.cpu(1)), False))
    assert "was not initialized on context cpu(1)" in text
    assert "In layer Net.features.1 (Dense" in text


def test_error_in_user_code_keeps_its_text_and_line() -> None:
    def convert(F: Any, x: Any) -> Any:
        return int("seven")

    error = failure(Compute(convert), mx.nd.ones((2, 4)), False)
    assert str(error) == "invalid literal for int() with base 10: 'seven'"
    assert type(error) is ValueError
    frames = traceback.extract_tb(error.__traceback__)
    assert frames[-1].name == "convert"
    if hasattr(error, "__notes__"):
        assert error.__notes__[0].startswith("In layer Net.features.1 (Compute")


def test_error_raised_by_user_code_keeps_its_cause() -> None:
    def refuse(F: Any, x: Any) -> Any:
        try:
            return int("seven")
        except ValueError as error:
            raise mx.MXNetError("no number") from error

    error = failure(Compute(refuse), mx.nd.ones((2, 4)), False)
    assert isinstance(error.__cause__, ValueError)


def test_layer_error_can_be_pickled_and_copied() -> None:
    error = failure(nn.Dense(3, in_units=5), mx.nd.ones((2, 4)), False)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(copy.copy(error)) == str(error)


def test_error_names_an_unregistered_block_by_its_class() -> None:
    class Holder(nn.Block):
        def __init__(self) -> None:
            super().__init__()
            self.parts = [nn.Dense(3, in_units=5)]

        def forward(self, x: mx.nd.NDArray) -> mx.nd.NDArray:
            return self.parts[0](x)

    net = Holder()
    net.parts[0].initialize()
    with pytest.raises(mx.MXNetError, match=r"In layer Holder\.Dense \(Dense 'dense\d+'\)"):
        net(mx.nd.ones((2, 4)))
