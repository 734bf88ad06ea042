"""The fully connected layer beyond its recorded answers."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ops import registry


def infer(name: str, data: tuple, outs: list | None = None, **attrs: object) -> tuple[list, list]:
    op = registry.get(name)
    complete = op.complete(op.parse(attrs))
    names = op.names_of_inputs(complete)
    return op.infer_shapes([data] + [None] * (len(names) - 1), outs or [None], complete)


def test_weight_and_bias_follow_from_data() -> None:
    ins, outs = infer("FullyConnected", (2, 3, 5), num_hidden=4)
    assert ins == [(2, 3, 5), (4, 15), (4,)]
    assert outs == [(2, 4)]


def test_without_flatten_only_the_last_axis_counts() -> None:
    ins, outs = infer("FullyConnected", (-1, 3, 5), num_hidden=4, flatten=False)
    assert ins[1] == (4, 5)
    assert outs == [(-1, 3, 4)]


def test_batch_follows_from_the_output() -> None:
    ins, _ = infer("FullyConnected", (-1, 3), [(7, 4)], num_hidden=4)
    assert ins[0] == (7, 3)


def test_a_weight_of_another_size_is_refused() -> None:
    with pytest.raises(MXNetError, match="FullyConnected"):
        mx.nd.FullyConnected(
            mx.nd.array([[1, 2]]), mx.nd.array([[1, 2]]), num_hidden=3, no_bias=True
        )
    with pytest.raises(MXNetError, match="FullyConnected"):
        mx.nd.FullyConnected(
            mx.nd.array([[1, 2, 3]]), mx.nd.array([[1, 2]]), num_hidden=1, no_bias=True
        )


@pytest.mark.parametrize("hybridize", [False, True])
def test_data_of_another_width_is_told_in_the_words_of_mxnet(hybridize: bool) -> None:
    net = mx.gluon.nn.Dense(3, in_units=4)
    net.initialize()
    if hybridize:
        net.hybridize()
    with pytest.raises(MXNetError, match=r"Provided = \[3, 4\], inferred shape=\[3, 5\]"):
        net(mx.nd.ones((2, 5)))
