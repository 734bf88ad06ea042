"""All ways to call an operator give equal values, dtypes, error types and messages.

The ways are: a first call, a cached call, a recorded call, a bound graph and a hybridized block.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

import mxnet as mx
from mxnet.ndarray import NDArray
from mxnet.ndarray.codegen import make_function
from mxnet.ops import interpreters, registry
from tests.closeness import assert_equal_up_to_rounding
from tests.grammar.calling import arrays_of
from tests.grammar.properties import check_all, for_rows
from tests.grammar.sampling import Row


def _listed(out: Any) -> list[NDArray]:
    return out if isinstance(out, list) else [out]


def _paths(row: Row) -> dict[str, Callable[[], list[NDArray]]]:
    function = make_function(registry.get(row.op), row.op, NDArray)  # with an empty call cache

    def recorded() -> list[NDArray]:
        with mx.autograd.record(train_mode=False):
            return _listed(function(*arrays_of(row), **row.attrs))

    def interpreted() -> list[NDArray]:
        with interpreters.Interpreter():
            return _listed(function(*arrays_of(row), **row.attrs))

    def eager() -> list[NDArray]:
        return _listed(function(*arrays_of(row), **row.attrs))

    return {"cold": eager, "cached": eager, "recorded": recorded, "interpreted": interpreted}


def _is_repeatable(row: Row) -> bool:
    return not row.train and not registry.get(row.op).facts.random


@for_rows(_is_repeatable, at_most=12)
def test_all_call_paths_return_equal_values_and_dtypes(family: str, rows: list[Row]) -> None:
    """Equal up to rounding: kernels may differ."""

    def check(row: Row) -> None:
        found = {name: run() for name, run in _paths(row).items()}
        cold = found["cold"]
        for name, outs in found.items():
            assert [o.dtype for o in outs] == [o.dtype for o in cold], name
            for one, other in zip(outs, cold, strict=True):
                assert_equal_up_to_rounding(one.asnumpy(), other.asnumpy(), err_msg=name)

    check_all(rows, check)


# (a call of F on arrays x: (2, 3), y: (4, 5), image: (1, 1, 4, 4); what the message must name)
MISUSES = {
    "dot": ("F.dot(x, y)", "dot"),
    "broadcast": ("F.broadcast_add(x, y)", "broadcast_add"),
    "elementwise": ("F.elemwise_add(x, y)", "elemwise_add"),
    "concat": ("F.concat(x, y, dim=1)", "Concat"),
    "stack": ("F.stack(x, y)", "stack"),
    "reshape": ("F.reshape(x, shape=(4, 2))", "Reshape"),
    "axis of sum": ("F.sum(x, axis=5)", "sum"),
    "axis of softmax": ("F.softmax(x, axis=7)", "softmax"),
    "transpose": ("F.transpose(x, axes=(0, 2))", "transpose"),
    "expand_dims": ("F.expand_dims(x, axis=9)", "expand_dims"),
    "pooling": ("F.Pooling(image, kernel=(9, 9), pool_type='max')", "Pooling"),
    "stride of pooling": ("F.Pooling(image, kernel=(2, 2), stride=(0, 0))", "Pooling"),
    "batch_dot": ("F.batch_dot(x, x)", "batch_dot"),
    "broadcast_to": ("F.broadcast_to(x, shape=(5, 3))", "broadcast_to"),
    "tile": ("F.slice_axis(x, axis=3, begin=0, end=1)", "slice_axis"),
    "split": ("F.split(x, num_outputs=2, axis=1)", "SliceChannel"),
    "dense": ("F.FullyConnected(x, y, num_hidden=4, no_bias=True)", "FullyConnected"),
    "convolution": (
        "F.Convolution(image, y, num_filter=1, kernel=(2, 2), no_bias=True)",
        "Convolution",
    ),
}
SHAPES = {"x": (2, 3), "y": (4, 5), "image": (1, 1, 4, 4)}


def _error(run: Callable[[], Any]) -> mx.MXNetError:
    with pytest.raises(mx.MXNetError) as caught:
        run()
    return caught.value


def _eager(text: str) -> Callable[[], Any]:
    arrays = {name: mx.nd.ones(shape) for name, shape in SHAPES.items()}
    return lambda: eval(text, {"F": mx.nd, **arrays})


def _warm(text: str) -> Callable[[], Any]:
    """Return the call, after a successful call of the same form has been cached."""
    run = _eager(text)
    fine = {name: mx.nd.ones((2, 2)) for name in SHAPES}
    with contextlib.suppress(mx.MXNetError):
        eval(text, {"F": mx.nd, **fine})
    return run


def _recorded(text: str) -> Callable[[], Any]:
    run = _eager(text)

    def inside() -> Any:
        with mx.autograd.record():
            return run()

    return inside


@pytest.mark.parametrize(("text", "named"), MISUSES.values(), ids=MISUSES.keys())
def test_all_eager_paths_raise_equal_errors(text: str, named: str) -> None:
    errors = {
        name: _error(make(text))
        for name, make in (
            ("cold", _eager),
            ("cached", _warm),
            ("recorded", _recorded),
            ("again", _eager),
        )
    }
    cold = errors["cold"]
    assert named in str(cold)
    for name, error in errors.items():
        assert (type(error), str(error)) == (type(cold), str(cold)), name


class _Misused(mx.gluon.HybridBlock):
    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def hybrid_forward(self, F: Any, x: Any, y: Any, image: Any) -> Any:
        return eval(self._text, {"F": F, "x": x, "y": y, "image": image})


@pytest.mark.filterwarnings("ignore:The .*-th input to HybridBlock is not used")
@pytest.mark.parametrize(("text", "named"), MISUSES.values(), ids=MISUSES.keys())
def test_graph_and_eager_errors_have_the_same_class(text: str, named: str) -> None:
    """The message of a graph also names the node."""
    cold = _error(_eager(text))
    net = _Misused(text)
    net.hybridize()
    hybrid = _error(lambda: net(*(mx.nd.ones(shape) for shape in SHAPES.values())))
    assert isinstance(hybrid, type(cold)) or isinstance(cold, type(hybrid)), (hybrid, cold)
    assert named in str(hybrid)
